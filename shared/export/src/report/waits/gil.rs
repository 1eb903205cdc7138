//! The column that is there where threads waited for Python's global lock.

use profile::{Detail, Reason, State, WaitKind};

use crate::report::numbers::seconds;
use crate::report::{Process, Row};

const GIL: WaitKind = WaitKind::new(Reason::Lock, Detail::Gil);

/// The column of time in which threads waited for the lock.
pub(in crate::report) const COLUMN: &str = "GIL";

/// The column's cells: of each of these threads, and of all of the process's; `None` if
/// nobody waited.
pub(in crate::report) fn cells(
    process: &Process<'_>,
    shown: &[Row<'_>],
) -> Option<(Vec<String>, String)> {
    let all: u64 = process.threads.iter().map(waited_ns).sum();
    let of_each = || shown.iter().map(|row| seconds(waited_ns(row))).collect();
    (all > 0).then(|| (of_each(), seconds(all)))
}

/// Returns the nanoseconds that a thread waited for the lock.
fn waited_ns(row: &Row<'_>) -> u64 {
    let stacks = row.thread.stacks.iter();
    let waits = stacks.filter(|(sample, _)| {
        let wait = row.profile.wait(sample);
        let is_for_gil = wait.is_some_and(|wait| wait.kind == GIL);
        is_for_gil && sample.state == Some(State::Blocked)
    });
    waits.map(|(_, weight)| weight.value).sum()
}
