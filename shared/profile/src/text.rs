//! Makes names that targets, the kernel and files choose safe to print.
//!
//! A name is cleaned once, where it enters a profile: every name in a [`Profile`](crate::Profile)
//! is a [`Text`]. Formats write names unchanged.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::ops::Deref;

use serde::{Serialize, Serializer};

use crate::marker::LanguageMark;
use crate::{Reason, marker};

/// Replaces each character that would act on a terminal or a viewer with `?`. These are the
/// control characters (C0 with tabs and line ends, DEL, C1), the line separators U+2028 and
/// U+2029, and the controls of bidirectional text (UAX #9).
#[must_use]
pub fn clean(text: &str) -> Cow<'_, str> {
    if text.contains(is_hostile) {
        Cow::Owned(text.replace(is_hostile, "?"))
    } else {
        Cow::Borrowed(text)
    }
}

fn is_hostile(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// A text that is safe to print. Every constructor calls [`clean`].
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(Box<str>);

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text(clean(text).into())
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        match clean(&text) {
            Cow::Owned(cleaned) => Text(cleaned.into()),
            Cow::Borrowed(_) => Text(text.into()),
        }
    }
}

impl From<Text> for String {
    fn from(text: Text) -> String {
        text.0.into()
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// Lets tables look up a text by its content.
impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        self
    }
}

impl fmt::Display for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        **self == *other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        **self == **other
    }
}

/// Returns a thread's name from the kernel's bytes (`TASK_COMM_LEN`, ended by a NUL), after
/// [`thread`]. Bytes that are not UTF-8 become U+FFFD.
#[must_use]
pub fn comm(raw: &[u8]) -> Text {
    let end = raw.iter().position(|&byte| byte == 0);
    let name = String::from_utf8_lossy(&raw[..end.unwrap_or(raw.len())]);
    if name.is_empty() {
        marker::UNNAMED.into()
    } else {
        thread(&name).as_ref().into()
    }
}

/// Converts a thread's name to a field of folded text that does not read as a marker: `;`
/// becomes `:`, and [`function`] changes the rest.
#[must_use]
pub fn thread(name: &str) -> Cow<'_, str> {
    match field(name) {
        Cow::Borrowed(name) => function(name),
        Cow::Owned(name) => Cow::Owned(function(&name).into_owned()),
    }
}

/// Changes the name of a target's function or thread if the name reads as a text of the tools:
///
/// - brackets around or before a name: `[timer]` becomes `(timer)`, and `[x` becomes `(x`;
/// - the delimiters of folded text, `-` and `--`: they become `(-)` and `(--)`;
/// - the suffixes of folded text, such as `_[k]`: it becomes `_(k)`.
///
/// All other brackets stay, as in `<[u8]>::fmt` and `operator[]`.
#[must_use]
pub fn function(name: &str) -> Cow<'_, str> {
    if matches!(name, "-" | "--") {
        return Cow::Owned(format!("({name})"));
    }
    if let Some(rest) = name.strip_prefix('[') {
        return Cow::Owned(match rest.strip_suffix(']') {
            Some(inside) => format!("({inside})"),
            None => format!("({rest}"),
        });
    }
    if let [.., b'_', b'[', letter, b']'] = name.as_bytes()
        && b"cikor".contains(letter)
    {
        let stem = &name[..name.len() - "[k]".len()];
        return Cow::Owned(format!("{stem}({})", char::from(*letter)));
    }
    Cow::Borrowed(name)
}

/// Returns the name of a frame without a symbol: the file's name in brackets, or in parentheses
/// if it reads as a text of the tools.
#[must_use]
pub fn unnamed_part(file: &str) -> String {
    let is_reason = |word: &str| Reason::ALL.iter().any(|reason| reason.name() == word);
    let is_of_tools =
        |(word, rest)| is_reason(word) || LanguageMark::ALL.iter().any(|mark| mark.text() == rest);
    let read = field(file);
    if marker::is_ours(&format!("[{read}]")) || read.split_once(": ").is_some_and(is_of_tools) {
        format!("({file})")
    } else {
        format!("[{file}]")
    }
}

/// Converts a frame's name to a field of folded text: `;` becomes `:`, and an empty name
/// becomes `[unknown]`.
#[must_use]
pub fn frame(name: &str) -> Cow<'_, str> {
    if name.is_empty() {
        Cow::Borrowed(marker::UNKNOWN)
    } else {
        field(name)
    }
}

fn field(name: &str) -> Cow<'_, str> {
    if name.contains(';') {
        Cow::Owned(name.replace(';', ":"))
    } else {
        Cow::Borrowed(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_a_terminal_or_a_viewer_is_replaced() {
        let hostile = "\0\t\n\u{7}\u{1b}\u{7f}\u{80}\u{9b}\u{9f}\u{61c}\u{200e}\u{200f}\
            \u{2028}\u{2029}\u{202a}\u{202e}\u{2066}\u{2069}";
        for character in hostile.chars() {
            assert_eq!(clean(&format!("a{character}b")), "a?b");
            assert_eq!(Text::from(format!("a{character}b")), "a?b");
        }
        let harmless = "a b~\u{a0}\u{e9}\u{2027}\u{202f}\u{2065}\u{206a}\u{5d0}\u{fffd}";
        assert!(matches!(clean(harmless), Cow::Borrowed(_)));
    }

    #[test]
    fn comm_ends_at_the_first_nul_and_is_one_field() {
        for (raw, expected) in [
            (&b"sshd\0\0garbage\0\0\0\0"[..], "sshd"),
            (b"exactly16letters", "exactly16letters"),
            (b"a;b c\nd\te\0", "a:b c?d?e"),
            (b"kworker/u:1\0", "kworker/u:1"),
            (b"caf\xe9\0", "caf\u{fffd}"),
            // U+0085 is a control character of two bytes.
            (b"x\xc2\x85y\0", "x?y"),
            (b"\0", "[unnamed]"),
            (b"", "[unnamed]"),
            (b"[unnamed]", "(unnamed)"),
        ] {
            assert_eq!(comm(raw), expected);
        }
    }

    #[test]
    fn no_name_of_a_target_reads_as_a_marker() {
        for (name, expected) in [
            ("[timer]", "(timer)"),
            ("[Missed", "(Missed"),
            ("[", "("),
            ("--", "(--)"),
            ("-", "(-)"),
            ("wait_[k]", "wait_(k)"),
            ("_[o]", "_(o)"),
        ] {
            assert_eq!(function(name), expected);
            // A capture may be read again and again, so a second change must do nothing.
            assert_eq!(function(expected), expected);
        }
        for name in [
            "<[u8; 8]>::fmt",
            "operator[]",
            "a_[x]",
            "a[k]",
            "---",
            "(a)",
        ] {
            assert_eq!(function(name), name);
        }
        for (file, expected) in [
            ("libc.so.6", "[libc.so.6]"),
            ("vdso", "(vdso)"),
            ("unknown", "(unknown)"),
            ("Missed User Stack", "(Missed User Stack)"),
            ("lock; mutex", "(lock; mutex)"),
            ("ruby: too deep", "(ruby: too deep)"),
            ("a: b", "[a: b]"),
        ] {
            assert_eq!(unnamed_part(file), expected);
        }
    }

    #[test]
    fn frame_names_are_left_alone_where_they_can_be() {
        assert!(matches!(
            frame("std::vector<int, std::allocator<int> >::push_back"),
            Cow::Borrowed(_)
        ));
        assert_eq!(frame("<[u8; 8]>::fmt"), "<[u8: 8]>::fmt");
        assert_eq!(frame(""), "[unknown]");
    }
}
