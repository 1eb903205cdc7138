//! Intervals: when a thread was in which state.

use crate::{Id, Sample, State, ThreadId};

/// A thread's stay in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The thread.
    pub thread: ThreadId,
    /// When the stay began, nanoseconds of CLOCK_MONOTONIC.
    pub start_ns: u64,
    /// How long it was, nanoseconds.
    pub length_ns: u64,
    /// The state.
    pub state: State,
    /// The sample whose value has the length in it. `None` if none has: running intervals
    /// have no stack of their own, and short ones may not be kept.
    pub sample: Option<Id<Sample>>,
}

impl Interval {
    /// When the stay ended, nanoseconds of CLOCK_MONOTONIC.
    #[must_use]
    pub fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.length_ns)
    }
}
