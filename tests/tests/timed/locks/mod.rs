//! Locks that hold threads up, their holders, and the functions that release them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod global;
mod runtime;

use std::collections::BTreeMap;
use std::fs;

use systemscope_tests::programs::workload::scratch;
use systemscope_tests::tries::patiently;
use systemscope_tests::{Tool, Turn, Workload};

const SECONDS: f64 = 3.0;

/// Resource, seconds of each hold, holder, and releasing thread and function. Nothing names the
/// holder of a rwlock. A lock that belongs to no library is not known to be a lock.
const LOCKS: [(&str, f64, Option<&str>, [&str; 2]); 4] = [
    (
        "lock: rwlock, index_lock",
        0.020,
        None,
        ["l_rebuild", "rebuild_index"],
    ),
    (
        "lock: mutex, journal_lock",
        0.010,
        Some("l_flush"),
        ["l_flush", "flush_journal"],
    ),
    (
        "lock: mutex, ledger_lock",
        0.005,
        Some("l_settle"),
        ["l_settle", "settle_ledger"],
    ),
    (
        "unknown: futex, own_lock",
        0.0025,
        None,
        ["l_write", "write_own"],
    ),
];
/// Names of the threads that wait for the locks.
const WAITERS: &str = "^l_(own|index|journal|ledger)$";

/// Row of the table, with total and longest wait in seconds, and the holders of the lock.
#[derive(Debug)]
pub(super) struct Row {
    seconds: f64,
    waits: u64,
    longest: f64,
    held: String,
    /// Share in percent, by function and thread that released the lock.
    released: BTreeMap<String, f64>,
}

impl Row {
    /// Returns whether nearly all waits of a single thread ended with a release that `is_expected`.
    /// The wait that the window's end cuts has no release, and is at most as long as the longest
    /// wait.
    pub(super) fn is_released(&self, is_expected: impl Fn(&str) -> bool) -> bool {
        let released = self.released.iter().filter(|(by, _)| is_expected(by));
        let released: f64 = released.map(|(_, share)| *share).sum();
        released >= 99.0 - self.longest / self.seconds * 100.0
    }
}

/// Parses the rows of the table, each with its resource.
pub(super) fn rows(table: &str) -> Vec<(String, Row)> {
    let mut rows: Vec<(String, Row)> = Vec::new();
    for line in table.lines().skip(1) {
        let line = line.trim();
        match line.split_once(" % ") {
            Some((share, how)) => {
                let (_, who) = how.split_once(" by ").unwrap_or(("", how));
                let (_, row) = rows.last_mut().expect("a row before");
                row.released.insert(who.to_owned(), share.parse().unwrap());
            }
            None => {
                let numbers: Vec<&str> = line.split_whitespace().take(4).collect();
                let (_, what) = line.rsplit_once("  ").unwrap();
                let (what, held) = what.split_once("; held by ").unwrap_or((what, ""));
                let row = Row {
                    seconds: numbers[0].parse().unwrap(),
                    waits: numbers[2].parse().unwrap(),
                    longest: numbers[3].parse().unwrap(),
                    held: held.to_owned(),
                    released: BTreeMap::new(),
                };
                rows.push((what.to_owned(), row));
            }
        }
    }
    rows
}

/// Returns the share in percent of `name` in a list such as `NAME (98.7 %), …`.
fn share_of(name: &str, held: &str) -> f64 {
    let mut parts = held.split("%)");
    let share = parts.find_map(|part| part.trim_start_matches(", ").strip_prefix(name));
    let share = share.and_then(|rest| rest.trim().strip_prefix('(')?.trim().parse().ok());
    share.unwrap_or(0.0)
}

/// Returns the table of `--format waits`.
pub(super) fn table(tool: Tool) -> String {
    table_in(&String::from_utf8(tool.run().succeeded().stdout).unwrap())
}

/// Returns the table from a text, such as wallclock's analysis.
fn table_in(told: &str) -> String {
    let from = told.find("Blocked time by resource").unwrap();
    told[from..].split("\n\n").next().unwrap().to_owned()
}

fn assert_locks(table: &str) {
    let rows = rows(table);
    for (expected, held, holder, [releaser, function]) in LOCKS {
        let row = rows.iter().find(|(what, _)| what == expected);
        let (_, row) = row.unwrap_or_else(|| panic!("{expected}: {table}"));
        // The thread that wants the lock waits for most of each hold, unless the thread comes late.
        let (least, most) = (row.waits as f64 * held * 0.5, SECONDS);
        assert!(row.waits > 10, "{expected}: {table}");
        assert!((least..=most).contains(&row.seconds), "{expected}: {table}");
        let share = holder.map_or(100.0, |holder| share_of(holder, &row.held));
        assert!(share >= 99.0, "{expected}: {table}");
        let is_released = row.is_released(|told| {
            told.starts_with(&format!("{releaser} in "))
                && told.contains(&format!(" ← {function} ← play"))
        });
        assert!(is_released, "{expected}: {table}");
    }
}

#[test]
fn locks_are_there_with_who_held_them_and_where_they_were_released() {
    let _turn = Turn::share();
    let locks = Workload::plain("locks");
    let of_waiters = |tool| Tool::new(tool).args("-m 100 --thread-name").arg(WAITERS);
    for tool in ["offwaketime", "offcputime"] {
        patiently(|| {
            let tool = of_waiters(tool).args("--format waits").pid(locks.pid());
            assert_locks(&table(tool.arg(SECONDS.to_string())));
        });
    }
    // A futex that may be a lock is never shown as idle.
    patiently(|| {
        let tool = Tool::new("offcputime").args("-m 100 --idle only --thread-name ^l_own$");
        let idle = tool.pid(locks.pid()).folded(1.0);
        assert_eq!(idle.total(), 0, "{idle}");
    });
    patiently(|| {
        let tool = of_waiters("wallclock")
            .args("-o out -d")
            .arg(SECONDS.to_string());
        let folder = scratch();
        let tool = tool.arg(locks.pid().to_string());
        tool.in_folder(folder.path()).run().succeeded();
        let analysis = folder.path().join("out/files/out_thread_analysis.txt");
        assert_locks(&table_in(&fs::read_to_string(analysis).unwrap()));
    });
}
