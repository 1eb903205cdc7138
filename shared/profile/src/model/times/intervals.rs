//! Intervals: parts of threads' lives, by state.

use std::ops::AddAssign;

use crate::{Id, Sample, State, ThreadId};

/// Time in each state, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// Time on a CPU.
    pub running_ns: u64,
    /// Time waiting for a CPU.
    pub runnable_ns: u64,
    /// Time waiting for anything else.
    pub blocked_ns: u64,
}

impl Shares {
    /// Returns shares that are all in one state.
    #[must_use]
    pub fn all(state: State, length_ns: u64) -> Shares {
        let mut shares = Shares::default();
        *shares.of_mut(state) = length_ns;
        shares
    }

    /// Returns the time in a state, in ns.
    #[must_use]
    pub const fn of(&self, state: State) -> u64 {
        match state {
            State::Running => self.running_ns,
            State::Runnable => self.runnable_ns,
            State::Blocked => self.blocked_ns,
        }
    }

    fn of_mut(&mut self, state: State) -> &mut u64 {
        match state {
            State::Running => &mut self.running_ns,
            State::Runnable => &mut self.runnable_ns,
            State::Blocked => &mut self.blocked_ns,
        }
    }

    /// Returns the sum in ns, at most `u64::MAX`.
    #[must_use]
    pub const fn total_ns(&self) -> u64 {
        let off_cpu = self.runnable_ns.saturating_add(self.blocked_ns);
        self.running_ns.saturating_add(off_cpu)
    }

    /// Returns the state with the most time; of equal ones the first in the order of [`State`].
    #[must_use]
    pub const fn largest(&self) -> State {
        if self.running_ns >= self.runnable_ns && self.running_ns >= self.blocked_ns {
            State::Running
        } else if self.runnable_ns >= self.blocked_ns {
            State::Runnable
        } else {
            State::Blocked
        }
    }

    /// Returns whether more than one state has time.
    #[must_use]
    pub const fn is_mixed(&self) -> bool {
        self.total_ns() != self.of(self.largest())
    }
}

impl AddAssign for Shares {
    fn add_assign(&mut self, other: Shares) {
        self.running_ns = self.running_ns.saturating_add(other.running_ns);
        self.runnable_ns = self.runnable_ns.saturating_add(other.runnable_ns);
        self.blocked_ns = self.blocked_ns.saturating_add(other.blocked_ns);
    }
}

/// A part of a thread's life. It is a stay in one state, or several stays of which most are
/// shorter than the timeline's minimum length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The thread.
    pub thread: ThreadId,
    /// Start, in ns of CLOCK_MONOTONIC.
    pub start_ns: u64,
    /// Time in each state; the sum is the length.
    pub shares: Shares,
    /// Sample whose value contains the length. `None` for running intervals, for several stays,
    /// and if the tool does not count the interval.
    pub sample: Option<Id<Sample>>,
}

impl Interval {
    /// Returns the length in ns.
    #[must_use]
    pub const fn length_ns(&self) -> u64 {
        self.shares.total_ns()
    }

    /// Returns the end, in ns of CLOCK_MONOTONIC.
    #[must_use]
    pub const fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.length_ns())
    }

    /// Returns the state in which most of the interval passed.
    #[must_use]
    pub const fn state(&self) -> State {
        self.shares.largest()
    }
}
