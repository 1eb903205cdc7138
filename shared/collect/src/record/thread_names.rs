//! Filter of threads by their names. Names change, and programs cannot match expressions. The
//! filter therefore uses the name that the thread had when it was counted.

use std::collections::HashMap;

use bpf::types::COMM_LENGTH;
use profile::Text;
use regex::Regex;

/// Maximum number of names whose match is remembered. Threads can make up any number of names.
const MAX_KNOWN: usize = 1 << 16;

/// Filter of names by a regular expression.
#[derive(Default)]
pub(crate) struct ThreadNames {
    expression: Option<Regex>,
    known: HashMap<[u8; COMM_LENGTH], bool>,
    any: bool,
}

impl ThreadNames {
    /// Makes a filter that includes the names that the expression matches. Without an expression it
    /// includes all names.
    pub(crate) fn new(expression: Option<Regex>) -> ThreadNames {
        ThreadNames {
            expression,
            ..ThreadNames::default()
        }
    }

    /// Returns whether the filter includes a name. The expression is matched with the name `own`
    /// that the thread's runtime has for it, or else with the printed form of `comm`, which has the
    /// kernel's bytes.
    pub(crate) fn include(&mut self, comm: &[u8; COMM_LENGTH], own: Option<&Text>) -> bool {
        let Some(expression) = &self.expression else {
            return true;
        };
        if let Some(own) = own {
            let is_wanted = expression.is_match(own);
            self.any |= is_wanted;
            return is_wanted;
        }
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        let decide = || expression.is_match(&profile::text::comm(comm));
        let is_wanted = *self.known.entry(*comm).or_insert_with(decide);
        self.any |= is_wanted;
        is_wanted
    }

    /// Returns the expression, if it matched no name.
    pub(crate) fn unseen(&self) -> Option<&str> {
        self.expression
            .as_ref()
            .filter(|_| !self.any)
            .map(Regex::as_str)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn comm(name: &str) -> [u8; COMM_LENGTH] {
        let mut comm = [0; COMM_LENGTH];
        comm[..name.len()].copy_from_slice(name.as_bytes());
        comm
    }

    #[test]
    fn names_are_wanted_as_they_are_printed() {
        let mut names = ThreadNames::new(Some(Regex::new("^pool-[0-9]+$").unwrap()));
        assert_eq!(names.unseen(), Some("^pool-[0-9]+$"));
        assert!(!names.include(&comm("pool-x"), None) && !names.include(&comm("a pool-1"), None));
        assert!(names.unseen().is_some());
        for _ in 0..2 {
            assert!(names.include(&comm("pool-1"), None));
        }
        assert_eq!((names.unseen(), names.known.len()), (None, 3));
        let mut printed = ThreadNames::new(Some(Regex::new("^a:b$|^.unnamed.$").unwrap()));
        // The name of a runtime decides alone.
        let own = Text::from("pool-1-of-many");
        assert!(!names.include(&comm("pool-1"), Some(&own)));
        assert!(printed.include(&comm("a;b"), None) && printed.include(&comm(""), None));
    }

    #[test]
    fn what_is_remembered_has_a_bound() {
        let mut names = ThreadNames::new(Some(Regex::new("9$").unwrap()));
        for number in 0..=MAX_KNOWN {
            let name = number.to_string();
            assert_eq!(names.include(&comm(&name), None), name.ends_with('9'));
        }
        assert_eq!(names.known.len(), 1);
    }
}
