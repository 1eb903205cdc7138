//! Column for time in which threads waited for Python's global lock. A table has the column only if
//! a thread waited.

use export::text::numbers::seconds;
use profile::{Detail, Reason, State, WaitKind};

use crate::{Process, Row};

const GIL: WaitKind = WaitKind::new(Reason::Lock, Detail::Gil);

/// Name of the column.
pub(crate) const COLUMN: &str = "GIL";

/// Meaning of the column.
pub(crate) const MEANING: &str = "seconds in which it waited for Python's global lock";

/// Returns the column's cells: one per shown thread, and the sum over the process's threads.
/// Returns `None` if no thread waited.
pub(crate) fn cells(process: &Process<'_>, shown: &[Row<'_>]) -> Option<(Vec<String>, String)> {
    let all: u64 = process.threads.iter().map(waited_ns).sum();
    let of_each = || shown.iter().map(|row| seconds(waited_ns(row))).collect();
    (all > 0).then(|| (of_each(), seconds(all)))
}

/// Returns the time that a thread waited for the lock, in ns.
fn waited_ns(row: &Row<'_>) -> u64 {
    let stacks = row.thread.stacks.iter();
    let waits = stacks.filter(|(sample, _)| {
        let wait = row.profile.wait(sample);
        let is_for_gil = wait.is_some_and(|wait| wait.kind == GIL);
        is_for_gil && sample.state == Some(State::Blocked)
    });
    waits.map(|(_, weight)| weight.value).sum()
}
