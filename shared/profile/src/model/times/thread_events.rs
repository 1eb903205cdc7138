//! Events in the lives of threads.

use crate::{Name, ThreadId};

/// Kind of an event in a thread's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadChange {
    /// The thread was born, or became a target.
    Started,
    /// The thread exited, or ceased to be a target.
    Ended,
    /// The thread executed a program, and has this name since.
    Executed(Name),
    /// The thread got this name.
    Renamed(Name),
}

/// An event in a thread's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadEvent {
    /// The thread.
    pub thread: ThreadId,
    /// Time, in ns of CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// Kind of the event.
    pub change: ThreadChange,
}
