//! Column for time in which threads waited for the global lock of Python or Ruby. A table has the column only if
//! a thread waited.

use export::text::numbers::seconds;
use profile::{Detail, Reason, State, WaitKind};

use crate::{Process, Row};

/// Waits for Python's lock and for Ruby's.
const GLOBAL_LOCKS: [WaitKind; 2] = [
    WaitKind::new(Reason::Lock, Detail::Gil),
    WaitKind::new(Reason::Lock, Detail::Gvl),
];

/// Name of the column.
pub(crate) const COLUMN: &str = "GIL";

/// Meaning of the column.
pub(crate) const MEANING: &str = "seconds in which it waited for the global lock of Python or Ruby";

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
        let is_for_gil = wait.is_some_and(|wait| GLOBAL_LOCKS.contains(&wait.kind));
        is_for_gil && sample.state == Some(State::Blocked)
    });
    waits.map(|(_, weight)| weight.value).sum()
}
