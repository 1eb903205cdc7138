//! A thread's time, split into five parts that add up to its life.

use std::iter::Sum;
use std::ops::Add;

use profile::{Idleness, Reason, State, Wait, WaitKind};

use crate::Row;

/// Times of one thread in ns, or sums over several threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// Time on a CPU.
    pub running: u64,
    /// Time ready to run, without a CPU.
    pub runnable: u64,
    /// Time blocked with work to do.
    pub waiting: u64,
    /// Time blocked without work to do.
    pub idle: u64,
    /// Time blocked, with or without work: the idleness is unknown.
    pub unknown: u64,
}

/// The part of a [`Split`] that the time of a wait counts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// The thread had work, and the wait held it up.
    Waiting,
    /// The thread had no work.
    Idle,
    /// The idleness of the thread is unknown.
    Unknown,
}

impl Split {
    /// Splits a thread's time. `of_several` is set if the report is of several processes.
    #[must_use]
    pub fn new(row: &Row<'_>, of_several: bool) -> Split {
        let clock = &row.thread.thread.clock;
        let mut split = Split {
            running: clock.running_ns,
            runnable: clock.runnable_ns,
            ..Split::default()
        };
        for (sample, weight) in &row.thread.stacks {
            let Some(wait) = row.profile.wait(sample) else {
                continue;
            };
            let counted = counted(wait, of_several);
            if sample.state == Some(State::Blocked) {
                match counted {
                    Counted::Waiting => split.waiting = split.waiting.saturating_add(weight.value),
                    Counted::Idle => split.idle = split.idle.saturating_add(weight.value),
                    Counted::Unknown => {}
                }
            } else if sample.state == Some(State::Runnable) && counted == Counted::Idle {
                // A thread that gave up the rest of its budget has no work until the next period.
                let idle = weight.value.min(split.runnable);
                split.runnable -= idle;
                split.idle = split.idle.saturating_add(idle);
            }
        }
        let known = [split.waiting, split.idle, split.runnable];
        let known = known.into_iter().fold(0, u64::saturating_add);
        let off_cpu = clock.runnable_ns.saturating_add(clock.blocked_ns);
        split.unknown = off_cpu.saturating_sub(known);
        split
    }

    /// Returns the time in which the threads had work, in ns.
    #[must_use]
    pub fn work(&self) -> u64 {
        (self.running)
            .saturating_add(self.runnable)
            .saturating_add(self.waiting)
    }

    /// Returns the sum of the five parts, in ns.
    #[must_use]
    pub fn whole(&self) -> u64 {
        (self.work())
            .saturating_add(self.idle)
            .saturating_add(self.unknown)
    }

    /// Returns the five parts, in the order of the fields.
    #[must_use]
    pub fn parts(&self) -> [u64; 5] {
        [
            self.running,
            self.runnable,
            self.waiting,
            self.idle,
            self.unknown,
        ]
    }

    /// Returns whether the threads had work for less than 0.5 % of the time, and less than half of
    /// the time is unknown.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let whole = u128::from(self.whole());
        u128::from(self.work()) * 200 < whole && u128::from(self.unknown) * 2 < whole
    }
}

impl Add for Split {
    type Output = Split;

    fn add(self, other: Split) -> Split {
        Split {
            running: self.running.saturating_add(other.running),
            runnable: self.runnable.saturating_add(other.runnable),
            waiting: self.waiting.saturating_add(other.waiting),
            idle: self.idle.saturating_add(other.idle),
            unknown: self.unknown.saturating_add(other.unknown),
        }
    }
}

impl Sum for Split {
    fn sum<I: Iterator<Item = Split>>(splits: I) -> Split {
        splits.fold(Split::default(), Add::add)
    }
}

/// Returns the part that the time of a wait counts to. A wait for a thread or process that the
/// report covers counts as idle, because the row of that thread or process has the cause.
#[must_use]
pub fn counted(wait: &Wait, of_several: bool) -> Counted {
    match wait.idleness {
        Idleness::Waiting if is_measured_itself(wait.kind, of_several) => Counted::Idle,
        Idleness::Waiting => Counted::Waiting,
        Idleness::Idle | Idleness::Dormant => Counted::Idle,
        Idleness::Unknown => Counted::Unknown,
    }
}

fn is_measured_itself(kind: WaitKind, of_several: bool) -> bool {
    kind.reason == Reason::Child && (of_several || kind.detail == profile::Detail::Thread)
}

/// Divides `cells` among parts in proportion, by largest remainders. The result adds up to `cells`,
/// or to 0 if all parts are 0.
#[must_use]
pub fn apportion<const N: usize>(parts: [u64; N], cells: u64) -> [u64; N] {
    let whole: u128 = parts.iter().map(|part| u128::from(*part)).sum();
    if whole == 0 {
        return [0; N];
    }
    let scaled = parts.map(|part| u128::from(part) * u128::from(cells));
    // Each share is at most `cells`.
    let mut shares = scaled.map(|scaled| u64::try_from(scaled / whole).unwrap_or(cells));
    let mut order: Vec<usize> = (0..N).collect();
    order.sort_by_key(|at| std::cmp::Reverse(scaled[*at] % whole));
    let rest = cells - shares.iter().sum::<u64>();
    for at in order
        .into_iter()
        .cycle()
        .take(usize::try_from(rest).unwrap_or(0))
    {
        shares[at] += 1;
    }
    shares
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn largest_remainders_get_what_is_left() {
        assert_eq!(apportion([1, 1, 1], 100), [34, 33, 33]);
        assert_eq!(apportion([996, 4], 100), [100, 0]);
        assert_eq!(apportion([0, 0], 15), [0, 0]);
        assert_eq!(apportion([u64::MAX, u64::MAX], 15), [8, 7]);
    }

    proptest! {
        #[test]
        fn shares_add_up(parts in any::<[u64; 5]>(), cells in 0_u64..1000) {
            let sum: u64 = apportion(parts, cells).iter().sum();
            let is_nothing = parts.iter().all(|part| *part == 0);
            prop_assert_eq!(sum, if is_nothing { 0 } else { cells });
        }
    }
}
