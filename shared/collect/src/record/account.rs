//! What a thread did in the window: its time in each state.

use bpf::types::{COMM_LENGTH, Thread};
use profile::{Clock, ThreadId};

/// A thread's account.
pub(crate) struct Account {
    id: ThreadId,
    comm: [u8; COMM_LENGTH],
    is_kernel_thread: bool,
    pub(crate) clock: Clock,
}

impl Account {
    /// When its clock started, CLOCK_MONOTONIC ns.
    pub(crate) fn started_ns(&self) -> u64 {
        self.clock.started_ns
    }

    /// Whose it is.
    pub(crate) fn id(&self) -> ThreadId {
        self.id
    }

    /// The account of a thread whose clock stopped at `ended_ns`.
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

    /// The thread's name when last seen.
    pub(crate) fn comm(&self) -> &[u8; COMM_LENGTH] {
        &self.comm
    }

    /// The ID of a thread of the kernel's own, which is a process to itself.
    pub(crate) fn kernel_thread(&self) -> Option<u32> {
        self.is_kernel_thread.then_some(self.id.pid)
    }
}

/// Whether a thread is one of the kernel's own: set_ids() of `include/clock/thread_record.h`.
fn is_kernel_thread(thread: &Thread) -> bool {
    thread.instance == 0
}
