//! Names that targets, the kernel and files choose, made safe to print.
//!
//! A name is cleaned once, where it enters: whatever a [`Profile`](crate::Profile) holds is a
//! [`Text`]. Formats write names as they are.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::ops::Deref;

use serde::{Serialize, Serializer};

use crate::marker::LanguageMark;
use crate::{Reason, marker};

/// Returns the text with `?` in place of each character that acts on a terminal or a viewer
/// instead of being shown: control characters (C0, DEL, C1; so also tabs and line ends), the
/// line separators U+2028 and U+2029, and the controls of bidirectional text (UAX #9).
#[must_use]
pub fn clean(text: &str) -> Cow<'_, str> {
    match text.contains(is_hostile) {
        true => Cow::Owned(text.replace(is_hostile, "?")),
        false => Cow::Borrowed(text),
    }
}

fn is_hostile(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// A text that is safe to print: it can only be made by [`clean`].
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

/// Tables find texts by what they say.
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

/// A thread's name from the kernel's bytes (`TASK_COMM_LEN`, ended by a NUL), as
/// [`thread`] has it; bytes that are not UTF-8 become U+FFFD.
#[must_use]
pub fn comm(raw: &[u8]) -> Text {
    let end = raw.iter().position(|&byte| byte == 0);
    let name = String::from_utf8_lossy(&raw[..end.unwrap_or(raw.len())]);
    match name.is_empty() {
        true => marker::UNNAMED.into(),
        false => thread(&name).as_ref().into(),
    }
}

/// Returns a thread's name as one field of folded text that does not read as a marker: `;`
/// becomes `:`, and the rest is as in [`function`].
#[must_use]
pub fn thread(name: &str) -> Cow<'_, str> {
    match field(name) {
        Cow::Borrowed(name) => function(name),
        Cow::Owned(name) => Cow::Owned(function(&name).into_owned()),
    }
}

/// Returns the name of a function or a thread of a target so that it does not read as what
/// the tools write in its place:
///
/// - brackets are the tools' own: `[timer]` becomes `(timer)`, and `[x` becomes `(x`;
/// - the delimiters of folded text, `-` and `--`, become `(-)` and `(--)`;
/// - its endings, such as `_[k]`, become `_(k)`.
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

/// Returns the frame of a file that no symbol covers: the file's name in brackets; in
/// parentheses if it would read as one that the tools write themselves.
#[must_use]
pub fn unnamed_part(file: &str) -> String {
    let is_reason = |word: &str| Reason::ALL.iter().any(|reason| reason.name() == word);
    let is_told =
        |(word, rest)| is_reason(word) || LanguageMark::ALL.iter().any(|mark| mark.text() == rest);
    let read = field(file);
    match marker::is_ours(&format!("[{read}]")) || read.split_once(": ").is_some_and(is_told) {
        true => format!("({file})"),
        false => format!("[{file}]"),
    }
}

/// Returns a frame's name as one field of folded text: `;` becomes `:`, and no name at all
/// becomes `[unknown]`.
#[must_use]
pub fn frame(name: &str) -> Cow<'_, str> {
    match name.is_empty() {
        true => Cow::Borrowed(marker::UNKNOWN),
        false => field(name),
    }
}

fn field(name: &str) -> Cow<'_, str> {
    match name.contains(';') {
        true => Cow::Owned(name.replace(';', ":")),
        false => Cow::Borrowed(name),
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
            // U+0085, a control character of two bytes.
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
            // Nothing is left to change: a capture may be read again and again.
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
