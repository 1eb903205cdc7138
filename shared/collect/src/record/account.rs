//! Accounts of threads: the time of a thread in each state inside the window.

use bpf::types::{COMM_LENGTH, Thread};
use profile::{Clock, ThreadId};

/// Account of one thread.
pub(crate) struct Account {
    id: ThreadId,
    comm: [u8; COMM_LENGTH],
    is_kernel_thread: bool,
    pub(crate) clock: Clock,
}

impl Account {
    /// Returns the time at which the thread's clock started, in ns of CLOCK_MONOTONIC.
    pub(crate) fn started_ns(&self) -> u64 {
        self.clock.started_ns
    }

    /// Returns the ID of the thread.
    pub(crate) fn id(&self) -> ThreadId {
        self.id
    }

    /// Makes the account of a thread whose clock stopped at `ended_ns`.
    pub(crate) fn new(thread: &Thread, ended_ns: u64) -> Account {
        Account {
            id: ThreadId {
                pid: thread.pid,
                tid: thread.tid,
            },
            comm: thread.comm,
            is_kernel_thread: is_kernel_thread(thread),
            clock: Clock {
                started_ns: thread.started,
                ended_ns,
                running_ns: thread.running,
                runnable_ns: thread.runnable,
                blocked_ns: thread.blocked,
                voluntary: thread.voluntary.into(),
                involuntary: thread.involuntary.into(),
            },
        }
    }

    /// Returns the thread's name at the time when a program last saw the thread.
    pub(crate) fn comm(&self) -> &[u8; COMM_LENGTH] {
        &self.comm
    }

    /// Returns the process ID if this is a kernel thread.
    pub(crate) fn kernel_thread(&self) -> Option<u32> {
        self.is_kernel_thread.then_some(self.id.pid)
    }
}

/// Returns whether a thread is a kernel thread (set_ids() of `include/clock/thread_record.h`).
fn is_kernel_thread(thread: &Thread) -> bool {
    thread.instance == 0
}
