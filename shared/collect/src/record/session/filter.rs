//! Filter of threads and of their off-CPU intervals.

use bpf::types::StateFilter;
use loader::{Kernel, OpenObject, Result};

use super::returns;

/// Kind of the threads to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadKind {
    /// All threads.
    All,
    /// Threads of processes.
    User,
    /// Kernel threads.
    Kernel,
}

impl ThreadKind {
    /// Returns the kind for two flags that exclude each other.
    pub fn new(user_only: bool, kernel_only: bool) -> ThreadKind {
        match (user_only, kernel_only) {
            (true, _) => ThreadKind::User,
            (_, true) => ThreadKind::Kernel,
            _ => ThreadKind::All,
        }
    }

    /// Returns the value that stands for this kind in programs.
    fn for_programs(self) -> bpf::types::ThreadKind {
        match self {
            ThreadKind::All => bpf::types::ThreadKind::ALL_THREADS,
            ThreadKind::User => bpf::types::ThreadKind::USER_THREADS,
            ThreadKind::Kernel => bpf::types::ThreadKind::KERNEL_THREADS,
        }
    }
}

/// Lowest minimum interval, in ns, at which programs take user stacks when threads return. A stack
/// at the return costs a little more for an interval that counts, and nothing for other intervals.
/// With a lower minimum, too few intervals are left out for this to pay.
const STACKS_AT_RETURN_FROM_NS: u64 = 10_000;

/// Filter of off-CPU intervals, with the rule in `include/clock/intervals.h`.
#[derive(Clone, Copy, Debug)]
pub struct OffCpuFilter {
    /// Kind of the threads to measure.
    pub kind: ThreadKind,
    /// Minimum length of an interval, in ns.
    pub min_ns: u64,
    /// Maximum length of an interval, in ns.
    pub max_ns: u64,
    /// Task states: `None` for all states, 0 for runnable, or else a mask of states.
    pub states: Option<u32>,
}

impl OffCpuFilter {
    /// Sets the constants of the programs, and chooses when they take user stacks.
    pub fn configure(&self, object: &mut OpenObject, kernel: &Kernel) -> Result<()> {
        let at_return = kernel.shows_returns && self.min_ns >= STACKS_AT_RETURN_FROM_NS;
        returns::configure(object, at_return)?;
        object.set(bpf::constants::THREAD_KIND, self.kind.for_programs())?;
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
