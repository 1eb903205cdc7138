//! Threads and where their time went.

use crate::Name;

/// A thread as the caller's PID namespace names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId {
    /// Thread group (process) ID.
    pub pid: u32,
    /// Thread ID.
    pub tid: u32,
}

/// A thread's account: where its life inside the window went.
///
/// `running_ns + runnable_ns + blocked_ns` is `ended_ns - started_ns`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// When the thread's life in the window began, CLOCK_MONOTONIC.
    pub started_ns: u64,
    /// When it ended, CLOCK_MONOTONIC.
    pub ended_ns: u64,
    /// On a CPU.
    pub running_ns: u64,
    /// Waiting for a CPU.
    pub runnable_ns: u64,
    /// Waiting for anything else.
    pub blocked_ns: u64,
    /// Context switches because the thread blocked.
    pub voluntary: u64,
    /// Context switches because it was preempted or yielded.
    pub involuntary: u64,
}

impl Clock {
    /// How long the thread lived inside the window, in nanoseconds.
    #[must_use]
    pub fn lifetime_ns(&self) -> u64 {
        self.ended_ns.saturating_sub(self.started_ns)
    }
}

/// A thread that was seen in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its IDs.
    pub id: ThreadId,
    /// Its name when last seen.
    pub comm: Name,
    /// Its account.
    pub clock: Clock,
}
