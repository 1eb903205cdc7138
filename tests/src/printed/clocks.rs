//! Reader for the thread accounts that `offcputime --clocks FILE` writes.

use std::fs;
use std::path::Path;

/// One thread's account in the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockRow {
    /// Process ID.
    pub pid: u32,
    /// Thread ID. A thread ID that was used twice has two rows.
    pub tid: u32,
    /// Thread name, with unsafe characters replaced.
    pub comm: String,
    /// Time at which the thread's life in the window began, in ns of CLOCK_MONOTONIC.
    pub started_ns: u64,
    /// Time at which the thread's life in the window ended, in ns of CLOCK_MONOTONIC.
    pub ended_ns: u64,
    /// Time on a CPU, in ns.
    pub running_ns: u64,
    /// Time waiting for a CPU, in ns.
    pub runnable_ns: u64,
    /// Time waiting for anything else, in ns.
    pub blocked_ns: u64,
    /// Number of context switches because the thread blocked.
    pub voluntary: u64,
    /// Number of context switches because the thread was preempted or yielded.
    pub involuntary: u64,
}

const HEADER: &str = "pid\ttid\tcomm\tstarted_ns\tended_ns\trunning_ns\trunnable_ns\tblocked_ns\tvoluntary\tinvoluntary";

impl ClockRow {
    /// Returns the time that the thread lived inside the window, in ns.
    pub fn lifetime_ns(&self) -> u64 {
        self.ended_ns - self.started_ns
    }

    /// Returns the sum of the times in the three states, in ns.
    pub fn accounted_ns(&self) -> u64 {
        self.running_ns + self.runnable_ns + self.blocked_ns
    }
}

/// Reads a file of thread accounts.
///
/// # Panics
///
/// Panics if the file cannot be read or parsed.
pub fn read(path: &Path) -> Vec<ClockRow> {
    let text = fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("the accounts in {}: {error}", path.display()));
    parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the only row with this thread name.
///
/// # Panics
///
/// Panics if there is none, or more than one.
pub fn named<'a>(rows: &'a [ClockRow], comm: &str) -> &'a ClockRow {
    let mut found = rows.iter().filter(|row| row.comm == comm);
    let row = found
        .next()
        .unwrap_or_else(|| panic!("no thread {comm} in {rows:#?}"));
    assert!(
        found.next().is_none(),
        "more than one thread {comm} in {rows:#?}"
    );
    row
}

fn parse(text: &str) -> Result<Vec<ClockRow>, String> {
    let mut lines = text.lines();
    let header = lines.next().unwrap_or_default();
    if header != HEADER {
        return Err(format!("header {header:?} is not {HEADER:?}"));
    }
    lines
        .map(|line| parse_row(line).ok_or_else(|| format!("not a row: {line:?}")))
        .collect()
}

fn parse_row(line: &str) -> Option<ClockRow> {
    let fields: Vec<&str> = line.split('\t').collect();
    if fields.len() != HEADER.split('\t').count() {
        return None;
    }
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(ClockRow {
        pid: fields.first()?.parse().ok()?,
        tid: fields.get(1)?.parse().ok()?,
        comm: (*fields.get(2)?).to_owned(),
        started_ns: number(3)?,
        ended_ns: number(4)?,
        running_ns: number(5)?,
        runnable_ns: number(6)?,
        blocked_ns: number(7)?,
        voluntary: number(8)?,
        involuntary: number(9)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_by_column() {
        let text = format!("{HEADER}\n7\t9\ta b\t100\t200\t50\t30\t20\t4\t5\n");
        let rows = parse(&text).unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!(
            (rows[0].pid, rows[0].tid, rows[0].comm.as_str()),
            (7, 9, "a b")
        );
        assert_eq!(rows[0].lifetime_ns(), 100);
        assert_eq!(rows[0].accounted_ns(), 100);
        assert_eq!((rows[0].voluntary, rows[0].involuntary), (4, 5));
    }

    #[test]
    fn what_is_no_table_is_refused() {
        assert!(parse("").is_err());
        assert!(parse(&format!("{HEADER}\n7\t9\ttoo few\n")).is_err());
        assert!(
            parse(&format!(
                "{HEADER}\n7\t9\ta\tb\t100\t200\t50\t30\t20\t4\t5\n"
            ))
            .is_err()
        );
    }
}
