//! Cuts texts to a length.

use std::borrow::Cow;

/// Cuts a text to at most `most` characters. A cut text ends in `…`.
pub fn cut(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some(_) => {
            let kept = text.chars().take(most.saturating_sub(1));
            Cow::Owned(kept.chain(['…']).collect())
        }
        None => Cow::Borrowed(text),
    }
}

/// Cuts a text to at most `most` characters in its middle: `/var/lib/…/ib_logfile0`.
pub fn cut_middle(text: &str, most: usize) -> Cow<'_, str> {
    let length = text.chars().count();
    if length <= most {
        return Cow::Borrowed(text);
    }
    // The end of a path or of a qualified name tells more than the beginning.
    let kept = most.saturating_sub(1);
    let start = kept / 3;
    let end = text.chars().skip(length - (kept - start));
    let cut = (text.chars().take(start)).chain(['…']).chain(end);
    Cow::Owned(cut.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_path_is_kept() {
        assert_eq!(cut("/var/lib", 8), "/var/lib");
        assert_eq!(cut("/var/lib", 5), "/var…");
        assert_eq!(
            cut_middle("/var/lib/mysql/ib_logfile0", 16),
            "/var/…b_logfile0"
        );
        assert_eq!(cut_middle("äöü", 2), "…ü");
        assert_eq!(cut_middle("abc", 0), "…");
    }
}
