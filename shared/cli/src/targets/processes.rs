//! Processes chosen on a command line by ID or by name.

use std::slice;

use loader::{ProcessNames, monotonic_ns};

use crate::{reason, values};

/// The processes that one word of the command line names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Processes {
    /// A process given by its ID. It must exist.
    Given(u32),
    /// Processes found by name. Each may end at any time, and the kernel may reuse its ID.
    Found {
        /// Process IDs.
        pids: Vec<u32>,
        /// Time at which the search began, in ns of CLOCK_MONOTONIC.
        since_ns: u64,
    },
    /// No process has this name.
    Nobody {
        /// Name that was searched for.
        name: String,
        /// Error text that lists similar names.
        instead: String,
    },
}

/// Maximum similar names in an error.
pub(crate) const MAX_SIMILAR: usize = 3;
/// Minimum Jaro-Winkler similarity of such a name; 1 means equal.
pub(crate) const LEAST_SIMILARITY: f64 = 0.8;

impl Processes {
    /// Parses an ID, or a name if the text has another character than digits.
    ///
    /// # Errors
    /// The number is no possible process ID, or the processes cannot be listed.
    pub fn parse(text: &str) -> Result<Processes, String> {
        if text.bytes().all(|byte| byte.is_ascii_digit()) || text.starts_with('-') {
            values::process_id(text).map(Processes::Given)
        } else {
            Processes::named(text)
        }
    }

    /// Finds every process of that name: the name of its first thread, or the file name of its
    /// executable.
    ///
    /// # Errors
    /// The processes cannot be listed.
    pub fn named(name: &str) -> Result<Processes, String> {
        let since_ns = monotonic_ns();
        let all = all_names()?;
        let pids: Vec<u32> = (all.iter())
            .filter(|names| names.has(name))
            .map(|names| names.pid)
            .collect();
        Ok(if pids.is_empty() {
            Processes::Nobody {
                name: name.to_owned(),
                instead: list_similar(name, &all),
            }
        } else {
            Processes::Found { pids, since_ns }
        })
    }

    /// Finds every process with a name that matches the regular expression.
    ///
    /// # Errors
    /// The text is no regular expression, no process matches, or the processes cannot be listed.
    pub fn matching(expression: &str) -> Result<Processes, String> {
        let expression = values::expression(expression)?;
        let since_ns = monotonic_ns();
        let all = all_names()?;
        let pids: Vec<u32> = (all.iter())
            .filter(|names| names.all().any(|name| expression.is_match(name)))
            .map(|names| names.pid)
            .collect();
        if pids.is_empty() {
            Err("no process has a name that matches; `ps -e` lists the names".to_owned())
        } else {
            Ok(Processes::Found { pids, since_ns })
        }
    }

    /// Returns the IDs of all chosen processes, ascending, without duplicates.
    #[must_use]
    pub fn ids<'a>(chosen: impl IntoIterator<Item = &'a Processes>) -> Vec<u32> {
        let ids = chosen.into_iter().flat_map(Processes::as_slice);
        let mut ids: Vec<u32> = ids.copied().collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Returns the IDs that the user gave, ascending. These processes must exist.
    #[must_use]
    pub fn given<'a>(chosen: impl IntoIterator<Item = &'a Processes>) -> Vec<u32> {
        let given = chosen.into_iter();
        Processes::ids(given.filter(|processes| matches!(processes, Processes::Given(_))))
    }

    /// Returns the time of the earliest search by name, in ns of CLOCK_MONOTONIC. A process that
    /// started later is another one that reuses the ID.
    #[must_use]
    pub fn found_ns<'a>(chosen: impl IntoIterator<Item = &'a Processes>) -> Option<u64> {
        let found = chosen.into_iter().filter_map(|processes| match processes {
            Processes::Found { since_ns, .. } => Some(*since_ns),
            _ => None,
        });
        found.min()
    }

    fn as_slice(&self) -> &[u32] {
        match self {
            Processes::Given(pid) => slice::from_ref(pid),
            Processes::Found { pids, .. } => pids,
            Processes::Nobody { .. } => &[],
        }
    }
}

fn all_names() -> Result<Vec<ProcessNames>, String> {
    ProcessNames::of_all()
        .map_err(|error| format!("cannot read /proc: {}; mount it first", reason(&error)))
}

/// Returns the error for a name that no process has, with similar names.
fn list_similar(name: &str, all: &[ProcessNames]) -> String {
    let mut similar: Vec<(f64, &str, u32)> = (all.iter())
        .flat_map(|names| names.all().map(|other| (other, names.pid)))
        .map(|(other, pid)| (similarity(name, other), other, pid))
        .filter(|(similarity, ..)| *similarity >= LEAST_SIMILARITY)
        .collect();
    similar.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(other.1)));
    similar.dedup_by_key(|(_, name, _)| *name);
    similar.truncate(MAX_SIMILAR);
    // A name may contain any byte but NUL.
    let shown: Vec<String> = (similar.iter())
        .map(|(_, name, pid)| format!("{} ({pid})", name.escape_debug()))
        .collect();
    if shown.is_empty() {
        "no process has this name; `ps -e` lists the names".to_owned()
    } else {
        format!(
            "no process has this name; similar ones: {}",
            shown.join(", ")
        )
    }
}

/// Returns the similarity of two names, 0 to 1; 1 if `name` contains `wanted`.
pub(crate) fn similarity(wanted: &str, name: &str) -> f64 {
    if name.contains(wanted) {
        1.0
    } else {
        strsim::jaro_winkler(wanted, name)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_ids_and_ids_come_once() {
        let ids = |texts: &[&str]| {
            let chosen: Vec<_> = texts
                .iter()
                .map(|text| Processes::parse(text).unwrap())
                .collect();
            Processes::ids(&chosen)
        };
        assert_eq!(ids(&["22", "1", "22"]), [1, 22]);
        let found = Processes::Found {
            pids: vec![6, 7],
            since_ns: 3,
        };
        let chosen = [Processes::Given(5), found];
        assert_eq!(Processes::found_ns(&chosen), Some(3));
        assert_eq!(Processes::found_ns(&chosen[..1]), None);
        assert_eq!(Processes::given(&chosen), [5]);
        for text in ["0", "-5", "4194305"] {
            assert!(Processes::parse(text).is_err(), "{text}");
        }
        for nobody in [
            Processes::parse("no such name at all"),
            Processes::named("1"),
        ] {
            assert!(matches!(nobody, Ok(Processes::Nobody { .. })), "{nobody:?}");
        }
        let told = Processes::matching("(").unwrap_err();
        assert_eq!(told, "unclosed group");
        assert!(Processes::matching("^no such name$").is_err());
    }

    #[test]
    fn this_process_is_not_meant() {
        let comm = std::fs::read_to_string("/proc/self/comm").unwrap();
        let own = std::process::id();
        let named = Processes::named(comm.trim_end());
        assert!(!named.is_ok_and(|named| named.as_slice().contains(&own)));
    }
}
