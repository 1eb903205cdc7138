//! The end of the thread clock: what is still open is closed at the window's
//! end, and every thread's account is drawn up.

use std::collections::HashMap;

use bpf::types::{
    COMM_LENGTH, ClockRecord, NO_OBJECT, OpenInterval, STACK_AT_RETURN, STACK_MISSED, StackKey,
    StateFilter, TASK_FROZEN, TASK_STOPPED, TASK_WAKING, Tally, Thread, ThreadEnd, ThreadState,
    WaitEnd, square_of,
};
use libbpf_rs::{Map, ProgramMut};
use loader::maps::take_all;
use loader::{Kernel, OpenObject, Result, iterators};
use profile::{Clock, ThreadId};

use super::{returns, unseen_departures};
use crate::StackChoice;
use crate::draft::Draft;
use crate::reasons::limit;

/// What an off-CPU interval that is open at the end counts for, and with which waker;
/// what was read of its thread then, if that was listed.
pub type Charge<'a, Record> =
    Box<dyn Fn(&Record, Tally, Option<&OpenInterval>) -> Option<(Tally, u64)> + 'a>;

/// Which threads are chosen where none is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadKind {
    /// All of them.
    All,
    /// Those of processes.
    User,
    /// The kernel's own.
    Kernel,
}

impl ThreadKind {
    /// Of two flags that exclude each other.
    pub fn new(user_only: bool, kernel_only: bool) -> ThreadKind {
        match (user_only, kernel_only) {
            (true, _) => ThreadKind::User,
            (_, true) => ThreadKind::Kernel,
            _ => ThreadKind::All,
        }
    }

    /// As programs have it.
    fn of_programs(self) -> bpf::types::ThreadKind {
        match self {
            ThreadKind::All => bpf::types::ThreadKind::ALL_THREADS,
            ThreadKind::User => bpf::types::ThreadKind::USER_THREADS,
            ThreadKind::Kernel => bpf::types::ThreadKind::KERNEL_THREADS,
        }
    }
}

/// Whether a thread is one of the kernel's own: set_ids() of `include/clock/thread_record.h`.
fn is_kernel_thread(thread: &Thread) -> bool {
    thread.instance == 0
}

/// Where shorter intervals do not count, user stacks are taken when threads are back: a
/// little dearer for those that count, and free for all others. Below, too few are others.
const STACKS_AT_RETURN_FROM_NS: u64 = 10_000;

/// Which off-CPU intervals count: the same rule as in
/// `include/clock/intervals.h`.
#[derive(Clone, Copy, Debug)]
pub struct OffCpuFilter {
    /// Whose they are.
    pub kind: ThreadKind,
    /// Shortest interval, nanoseconds.
    pub min_ns: u64,
    /// Longest interval, nanoseconds.
    pub max_ns: u64,
    /// Task states: `None` for all, 0 for runnable, else a mask.
    pub states: Option<u32>,
}

impl OffCpuFilter {
    /// Tells programs.
    pub fn configure(&self, object: &mut OpenObject, kernel: &Kernel) -> Result<()> {
        let at_return = kernel.shows_returns && self.min_ns >= STACKS_AT_RETURN_FROM_NS;
        returns::configure(object, at_return)?;
        object.set(bpf::constants::THREAD_KIND, self.kind.of_programs())?;
        object.set(bpf::constants::MIN_INTERVAL, self.min_ns)?;
        object.set(bpf::constants::MAX_INTERVAL, self.max_ns)?;
        let (filter, mask) = match self.states {
            None => (StateFilter::STATES_ALL, 0),
            Some(0) => (StateFilter::STATES_RUNNABLE, 0),
            Some(mask) => (StateFilter::STATES_IN_MASK, mask),
        };
        object.set(bpf::constants::STATE_FILTER, filter)?;
        object.set(bpf::constants::STATE_MASK, mask)
    }

    /// Whether an interval of `length_ns` that began in `off_state` counts.
    pub fn admits(&self, length_ns: u64, off_state: u32) -> bool {
        let state = match self.states {
            None => true,
            Some(0) => off_state == 0,
            Some(mask) => off_state & mask != 0,
        };
        state && (self.min_ns..=self.max_ns).contains(&length_ns)
    }
}

/// A thread's account.
pub(crate) struct Account {
    id: ThreadId,
    comm: [u8; COMM_LENGTH],
    is_kernel_thread: bool,
    clock: Clock,
}

/// Every thread's clock when the window closed.
pub(crate) struct ThreadClocks<Record> {
    threads: Vec<(u64, Record)>,
    open: HashMap<u64, OpenInterval>,
    unreturned: HashMap<u64, u64>,
    stop: u64,
}

impl<Record: ClockRecord> ThreadClocks<Record> {
    /// Reads the stacks of the intervals that are still open. To be called
    /// after the window closed and before the programs are detached: whatever
    /// runs again meanwhile closes its interval itself.
    pub(crate) fn read_open_intervals(iterator: &ProgramMut<'_>) -> Result<Vec<OpenInterval>> {
        iterators::run(iterator)
    }

    /// Reads the clocks, once the programs are detached. `unreturned` are the user stacks
    /// that were to be taken when threads are back, by task.
    pub(crate) fn read(
        map: &Map<'_>,
        open: Vec<OpenInterval>,
        unreturned: HashMap<u64, u64>,
        stop: u64,
    ) -> Result<ThreadClocks<Record>> {
        let mut threads = Vec::new();
        take_all(map, "the thread clocks", |task, thread| {
            threads.push((task, thread))
        })?;
        let open = open
            .into_iter()
            .map(|interval| (interval.task, interval))
            .collect();
        Ok(ThreadClocks {
            threads,
            open,
            unreturned,
            stop,
        })
    }

    /// Closes what is open, and hands the intervals that end thereby to `add`. Returns
    /// the accounts of all threads, those in `ended` and `departed` included, and how many
    /// left a CPU out of sight.
    pub(crate) fn close(
        self,
        ended: &[ThreadEnd],
        departed: Vec<Account>,
        stacks: &StackChoice,
        charge: &Charge<'_, Record>,
        mut add: impl FnMut(StackKey, &Tally),
    ) -> (Vec<Account>, u64) {
        let mut left_unseen = 0;
        let mut accounts = departed;
        let ended = ended.iter();
        accounts.extend(ended.map(|end| Account::new(&end.thread, end.ended)));
        for (task, record) in self.threads {
            let mut thread = record.thread();
            left_unseen += u64::from(unseen_departures::settle(&mut thread, self.stop));
            let open = self.open.get(&task);
            if thread.user == STACK_AT_RETURN {
                let read = self.unreturned.get(&task).copied();
                thread.user = read.unwrap_or(STACK_MISSED);
            }
            let closed = close_record(&record, thread, open, self.stop, stacks, charge);
            let (account, interval) = closed;
            accounts.push(account);
            if let Some((key, tally)) = interval {
                add(key, &tally);
            }
        }
        accounts.sort_by_key(|account| (account.id, account.clock.started_ns));
        (accounts, left_unseen)
    }
}

/// Closes a thread's record, whose clock is `thread`, at `stop`. Returns its account and the
/// interval off the CPU that ends thereby, if `charge` has that count. `open` is what was
/// read of the thread.
pub(crate) fn close_record<Record: ClockRecord>(
    record: &Record,
    mut thread: Thread,
    open: Option<&OpenInterval>,
    stop: u64,
    stacks: &StackChoice,
    charge: &Charge<'_, Record>,
) -> (Account, Option<(StackKey, Tally)>) {
    let open = open.filter(|open| open.off_since == thread.off_since);
    let tally = close_at(&mut thread, open, stop);
    let charged = tally.and_then(|tally| charge(record, tally, open));
    let kernel = open.map_or(STACK_MISSED, |open| open.kernel);
    let wait_end = end_of_open(&thread, open);
    let interval = charged.map(|(tally, waker)| {
        let key = StackKey {
            pid: thread.pid,
            tid: if stacks.per_thread { thread.tid } else { 0 },
            user: if stacks.user { thread.user } else { 0 },
            kernel: if stacks.kernel { kernel } else { 0 },
            waker,
            object: open.map_or(NO_OBJECT, |open| open.object),
            wait_end: wait_end.0.into(),
            // As long as it was: none is sampled that did not end.
            period: 0,
            comm: thread.comm,
        };
        (key, tally)
    });
    (Account::new(&thread, stop), interval)
}

/// How the interval counts as ended that is open when its thread's record is closed.
fn end_of_open(thread: &Thread, open: Option<&OpenInterval>) -> WaitEnd {
    let state = open.map_or(0, |open| open.task_state);
    let end = WaitEnd(thread.work.end);
    if state & TASK_STOPPED != 0 {
        WaitEnd::WAIT_END_STOPPED
    } else if state & TASK_FROZEN != 0 {
        WaitEnd::WAIT_END_FROZEN
    } else if thread.running + thread.runnable == 0 {
        WaitEnd::WAIT_END_NONE
    } else if limit(end).is_some() {
        end
    } else {
        WaitEnd::WAIT_END_UNKNOWN
    }
}

/// Adds a thread's open interval to its sums. Returns the whole off-CPU
/// interval that thereby ends, if it was off CPU.
fn close_at(thread: &mut Thread, open: Option<&OpenInterval>, stop: u64) -> Option<Tally> {
    let time = stop.saturating_sub(thread.since());
    let mut state = thread.state();
    // The kernel knows whether it sleeps. Where it was not asked: a waker that
    // came early came between its decision to sleep and the switch.
    let awake = match open {
        Some(open) => matches!(open.task_state, 0 | TASK_WAKING),
        None => thread.woken_early != 0,
    };
    if state == ThreadState::Blocked && awake {
        state = ThreadState::Runnable;
    }
    match state {
        ThreadState::Running => {
            thread.running += time;
            return None;
        }
        ThreadState::Runnable => thread.runnable += time,
        ThreadState::Blocked => {
            thread.blocked += time;
            thread.off_blocked = time;
        }
    }
    let length = stop.saturating_sub(thread.off_since);
    (length > 0).then(|| Tally {
        events: 1,
        blocked: thread.off_blocked,
        runnable: length.saturating_sub(thread.off_blocked),
        longest: length,
        shortest: length,
        squares: square_of(length),
    })
}

impl Account {
    /// Whose it is.
    pub(crate) fn id(&self) -> ThreadId {
        self.id
    }

    fn new(thread: &Thread, ended_ns: u64) -> Account {
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

    /// The thread in a profile.
    pub(crate) fn named(&self, draft: &mut Draft) -> profile::Thread {
        profile::Thread {
            id: self.id,
            comm: draft.comm(&self.comm),
            clock: self.clock,
        }
    }
}

#[cfg(test)]
mod tests;
