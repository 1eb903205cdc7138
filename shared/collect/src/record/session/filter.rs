//! Which threads are measured, and which of their intervals count.

use bpf::types::StateFilter;
use loader::{Kernel, OpenObject, Result};

use super::returns;

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

/// Where shorter intervals do not count, user stacks are taken when threads are back: a
/// little dearer for those that count, and free for all others. Below, too few are others.
const STACKS_AT_RETURN_FROM_NS: u64 = 10_000;

/// Which off-CPU intervals count: `include/clock/intervals.h` has the rule.
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
}
