//! Threads and their clocks.

use crate::Name;

/// A thread, by its IDs in the caller's PID namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId {
    /// Process ID (the kernel's thread group ID).
    pub pid: u32,
    /// Thread ID.
    pub tid: u32,
}

/// Account of a thread's life inside the window, in ns.
///
/// `running_ns + runnable_ns + blocked_ns` is `ended_ns - started_ns`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// Start of the life inside the window, in ns of CLOCK_MONOTONIC.
    pub started_ns: u64,
    /// End of the life inside the window, in ns of CLOCK_MONOTONIC.
    pub ended_ns: u64,
    /// Time on a CPU.
    pub running_ns: u64,
    /// Time waiting for a CPU.
    pub runnable_ns: u64,
    /// Time waiting for anything else.
    pub blocked_ns: u64,
    /// Number of context switches because the thread blocked.
    pub voluntary: u64,
    /// Number of context switches because the thread was preempted or yielded.
    pub involuntary: u64,
}

impl Clock {
    /// Returns the length of the life inside the window, in ns.
    #[must_use]
    pub fn lifetime_ns(&self) -> u64 {
        self.ended_ns.saturating_sub(self.started_ns)
    }

    /// Returns the time in all states, in ns.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        let off_cpu = self.runnable_ns.saturating_add(self.blocked_ns);
        self.running_ns.saturating_add(off_cpu)
    }
}

/// A thread with its account in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Process and thread ID.
    pub id: ThreadId,
    /// Last known name.
    pub comm: Name,
    /// Account of the thread.
    pub clock: Clock,
}
