//! Languages with a runtime that runs their functions.

use std::fmt;

/// Name of a language, such as `ruby`: up to eight lower-case letters and digits. Profiles
/// name languages, because a capture may have a language that its reader does not know.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LanguageName([u8; 8]);

impl LanguageName {
    /// Returns the language with this name, or `None` if the name is too long, is empty or has
    /// other characters.
    #[must_use]
    pub const fn new(name: &str) -> Option<LanguageName> {
        let bytes = name.as_bytes();
        let mut padded = [0; 8];
        if bytes.is_empty() || bytes.len() > padded.len() {
            return None;
        }
        let mut at = 0;
        while at < bytes.len() {
            if !matches!(bytes[at], b'a'..=b'z' | b'0'..=b'9') {
                return None;
            }
            padded[at] = bytes[at];
            at += 1;
        }
        Some(LanguageName(padded))
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let length = self.0.iter().position(|&byte| byte == 0);
        let name = self.0.get(..length.unwrap_or(self.0.len()));
        str::from_utf8(name.unwrap_or_default()).unwrap_or_default()
    }
}

impl fmt::Display for LanguageName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Debug for LanguageName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_plain() {
        for name in ["r", "ruby", "lua51", "eightlet"] {
            let found = LanguageName::new(name).map(|name| name.to_string());
            assert_eq!(found.as_deref(), Some(name));
        }
        for name in ["", "ninelette", "Ruby", "c++", "a b", "ü", "a;b", "a\0"] {
            assert_eq!(LanguageName::new(name), None, "{name:?}");
        }
    }
}
