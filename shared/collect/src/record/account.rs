//! Accounts of threads: the time of a thread in each state inside the window.

use bpf::types::{COMM_LENGTH, Thread};
use capture::LanePart;
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

    /// Restarts the clock at `start_ns`, or where it started if that is later.
    pub(crate) fn restart(&mut self, start_ns: u64) {
        let Clock {
            started_ns,
            ended_ns,
            ..
        } = self.clock;
        self.clock = Clock {
            started_ns: started_ns.max(start_ns),
            ended_ns,
            ..Clock::default()
        };
    }

    /// Adds a part of the thread's lane to a clock that was restarted. The clock starts at its first
    /// part. Each off-CPU interval of a part is a switch; nothing tells the number of shorter ones.
    pub(crate) fn add_part(&mut self, part: &LanePart) {
        let clock = &mut self.clock;
        if clock.total_ns() == 0 {
            clock.started_ns = clock.started_ns.max(part.start_ns);
        }
        clock.running_ns += part.stretch.running_ns;
        clock.runnable_ns += part.stretch.runnable_ns + part.runnable_ns;
        clock.blocked_ns += part.stretch.blocked_ns + part.blocked_ns;
        clock.voluntary += u64::from(part.blocked_ns > 0);
        clock.involuntary += u64::from(part.blocked_ns == 0 && part.runnable_ns > 0);
    }

    /// Ends a clock that was restarted: a thread without a row has no life in the recording.
    pub(crate) fn end(&mut self) {
        if self.clock.total_ns() == 0 {
            self.clock.started_ns = self.clock.ended_ns;
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
