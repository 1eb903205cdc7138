//! Text in HTML.

use std::fmt;

/// A text that HTML shows as it is, in an element or in a quoted attribute. It shows control
/// characters and the controls of bidirectional text as `\u{…}`, because they would act on the page.
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(is_special) {
            let (plain, special) = rest.split_at(at);
            formatter.write_str(plain)?;
            let mut characters = special.chars();
            match characters.next() {
                Some('&') => formatter.write_str("&amp;")?,
                Some('<') => formatter.write_str("&lt;")?,
                Some('>') => formatter.write_str("&gt;")?,
                Some('"') => formatter.write_str("&quot;")?,
                Some('\'') => formatter.write_str("&#39;")?,
                Some(other) => write!(formatter, "{}", other.escape_unicode())?,
                None => {}
            }
            rest = characters.as_str();
        }
        formatter.write_str(rest)
    }
}

/// Returns whether HTML or a person would not read a character as itself: markup, control
/// characters, line separators, the controls of bidirectional text, the byte order mark, and
/// noncharacters, which HTML does not allow.
fn is_special(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '&' | '<' | '>' | '"' | '\''
            | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{fdd0}'..='\u{fdef}'
        )
        || u32::from(character) & 0xfffe == 0xfffe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_is_only_text() {
        for (text, expected) in [
            ("main", "main"),
            ("", ""),
            (
                "</script><script>alert(1)</script>",
                "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;",
            ),
            ("<!--", "&lt;!--"),
            (
                "a\" onload='x' &amp;",
                "a&quot; onload=&#39;x&#39; &amp;amp;",
            ),
            (
                "a\u{2028}b\u{202e}c\nd\u{0}",
                r"a\u{2028}b\u{202e}c\u{a}d\u{0}",
            ),
            ("\u{feff}\u{fffe}\u{1ffff}", r"\u{feff}\u{fffe}\u{1ffff}"),
            ("__proto__ größer 線程", "__proto__ größer 線程"),
        ] {
            assert_eq!(Escaped(text).to_string(), expected);
        }
    }
}
