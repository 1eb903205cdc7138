//! Processes chosen on a command line: by ID or by name.

use std::slice;

use loader::{ProcessNames, monotonic_ns};

use crate::{reason, values};

/// The processes that one word stands for, by ID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Processes {
    /// One that is named by its ID, and has to be there.
    Given(u32),
    /// Those that were found. One of them may end at any time, and its ID be used again.
    Found {
        /// Their IDs.
        pids: Vec<u32>,
        /// When to look for them was begun, CLOCK_MONOTONIC, nanoseconds.
        since_ns: u64,
    },
    /// Nobody has this name.
    Nobody {
        /// The name.
        name: String,
        /// What there is instead.
        instead: String,
    },
}

/// How many names like the one given are told.
pub(crate) const MOST_TOLD: usize = 3;
/// How like it they are, as Jaro and Winkler have it: 1 for the same.
pub(crate) const LEAST_LIKENESS: f64 = 0.8;

impl Processes {
    /// An ID, or a name if it is not made of digits only.
    ///
    /// # Errors
    /// No process can have the ID.
    pub fn of(text: &str) -> Result<Processes, String> {
        match text.bytes().all(|byte| byte.is_ascii_digit()) || text.starts_with('-') {
            true => values::process_id(text).map(Processes::Given),
            false => Processes::named(text),
        }
    }

    /// Every process of that name: its first thread's, or its executable's file name.
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
        Ok(match pids.is_empty() {
            true => Processes::Nobody {
                name: name.to_owned(),
                instead: none_named(name, &all),
            },
            false => Processes::Found { pids, since_ns },
        })
    }

    /// Every process that has a name in which the expression is found.
    ///
    /// # Errors
    /// It is no regular expression, or there is none.
    pub fn matching(expression: &str) -> Result<Processes, String> {
        let expression = values::expression(expression)?;
        let since_ns = monotonic_ns();
        let all = all_names()?;
        let pids: Vec<u32> = (all.iter())
            .filter(|names| names.all().any(|name| expression.is_match(name)))
            .map(|names| names.pid)
            .collect();
        match pids.is_empty() {
            true => Err("no process has such a name; `ps -e` lists them".to_owned()),
            false => Ok(Processes::Found { pids, since_ns }),
        }
    }

    /// All that are meant, each once, ascending.
    #[must_use]
    pub fn ids<'a>(chosen: impl IntoIterator<Item = &'a Processes>) -> Vec<u32> {
        let ids = chosen.into_iter().flat_map(Processes::as_slice);
        let mut ids: Vec<u32> = ids.copied().collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Those that have to be there.
    #[must_use]
    pub fn given<'a>(chosen: impl IntoIterator<Item = &'a Processes>) -> Vec<u32> {
        let given = chosen.into_iter();
        Processes::ids(given.filter(|processes| matches!(processes, Processes::Given(_))))
    }

    /// When the first of those that were found was, CLOCK_MONOTONIC, nanoseconds: who is
    /// younger has only the ID.
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
    ProcessNames::of_all().map_err(|error| format!("cannot read /proc: {}", reason(&error)))
}

/// That there is none, and which ones are called nearly so.
fn none_named(name: &str, all: &[ProcessNames]) -> String {
    let mut like: Vec<(f64, &str, u32)> = (all.iter())
        .flat_map(|names| names.all().map(|other| (other, names.pid)))
        .map(|(other, pid)| (likeness(name, other), other, pid))
        .filter(|(likeness, ..)| *likeness >= LEAST_LIKENESS)
        .collect();
    like.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(other.1)));
    like.dedup_by_key(|(_, name, _)| *name);
    like.truncate(MOST_TOLD);
    let like = like.iter();
    // Any bytes but NUL can be in them.
    let like = like.map(|(_, name, pid)| format!("{} ({pid})", name.escape_debug()));
    match like.collect::<Vec<_>>().join(", ") {
        like if like.is_empty() => "no process is called so; `ps -e` lists them".to_owned(),
        like => format!("no process is called so; there are {like}"),
    }
}

pub(crate) fn likeness(wanted: &str, name: &str) -> f64 {
    match name.contains(wanted) {
        true => 1.0,
        false => strsim::jaro_winkler(wanted, name),
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
                .map(|text| Processes::of(text).unwrap())
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
            assert!(Processes::of(text).is_err(), "{text}");
        }
        for nobody in [Processes::of("no such name at all"), Processes::named("1")] {
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
