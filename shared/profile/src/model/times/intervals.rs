//! Intervals: stays of threads in one state.

use crate::{Id, Sample, State, ThreadId};

/// A thread's stay in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The thread.
    pub thread: ThreadId,
    /// Start, in ns of CLOCK_MONOTONIC.
    pub start_ns: u64,
    /// Length in ns.
    pub length_ns: u64,
    /// The state.
    pub state: State,
    /// Sample whose value contains the length. `None` for running intervals, which have no
    /// stack of their own, and for short intervals that were not kept.
    pub sample: Option<Id<Sample>>,
}

impl Interval {
    /// Returns the end, in ns of CLOCK_MONOTONIC.
    #[must_use]
    pub fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.length_ns)
    }
}
