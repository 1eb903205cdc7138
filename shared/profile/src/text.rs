//! Making names safe to print: one line, one field, never empty.

use std::borrow::Cow;

/// What stands for a thread's name where it has none.
const UNNAMED: &str = "[unnamed]";
/// What stands for a frame's name where it has none.
const UNKNOWN: &str = "[unknown]";

/// A thread's name from the kernel's bytes (`TASK_COMM_LEN`, ended by a NUL):
/// `;` becomes `:`, control characters `?`, bytes that are not UTF-8 U+FFFD, and
/// no name at all `[unnamed]`.
#[must_use]
pub fn comm(raw: &[u8]) -> String {
    let end = raw.iter().position(|&byte| byte == 0);
    let name = String::from_utf8_lossy(&raw[..end.unwrap_or(raw.len())]);
    safe(&name, UNNAMED).into_owned()
}

/// A frame's name under the same rules; no name at all becomes `[unknown]`.
#[must_use]
pub fn frame(name: &str) -> Cow<'_, str> {
    safe(name, UNKNOWN)
}

fn safe<'a>(name: &'a str, absent: &'static str) -> Cow<'a, str> {
    let bad = |character: char| character == ';' || character.is_control();
    if name.is_empty() {
        Cow::Borrowed(absent)
    } else if name.contains(bad) {
        Cow::Owned(name.replace(';', ":").replace(char::is_control, "?"))
    } else {
        Cow::Borrowed(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comm_ends_at_the_first_nul() {
        assert_eq!(comm(b"sshd\0\0garbage\0\0\0\0"), "sshd");
        assert_eq!(comm(b"exactly16letters"), "exactly16letters");
    }

    #[test]
    fn comm_is_one_field_of_one_line() {
        assert_eq!(comm(b"a;b c\nd\te\0"), "a:b c?d?e");
        assert_eq!(comm(b"kworker/u:1\0"), "kworker/u:1");
        assert_eq!(comm(b"caf\xe9\0"), "caf\u{fffd}");
        // U+0085, a control character of two bytes.
        assert_eq!(comm(b"x\xc2\x85y\0"), "x?y");
        assert_eq!(comm(b"\0"), "[unnamed]");
        assert_eq!(comm(b""), "[unnamed]");
    }

    #[test]
    fn frame_names_are_left_alone_where_they_can_be() {
        assert!(matches!(
            frame("std::vector<int, std::allocator<int> >::push_back"),
            Cow::Borrowed(_)
        ));
        assert_eq!(frame("<[u8; 8]>::fmt\r"), "<[u8: 8]>::fmt?");
        assert_eq!(frame(""), "[unknown]");
    }
}
