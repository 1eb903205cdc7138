//! Fair shares of a capacity that all processes share. `bpf/include/shares.h` applies the same rule
//! to the data that BPF programs send and count.

use std::collections::HashMap;

use crate::Living;

/// Usage of a capacity, by process.
#[derive(Default)]
pub struct Shares {
    /// Used amount, by process ID.
    taken: HashMap<u32, usize>,
    refused: u64,
}

impl Shares {
    /// Returns whether a process may take `more` while `used` of `all` is in use. A process may
    /// take at most three times as much as it leaves. No process is refused while a quarter of
    /// `all` is free.
    #[must_use]
    pub fn may_take(&self, pid: u32, more: usize, used: usize, all: usize) -> bool {
        let taken = self.taken.get(&pid).copied().unwrap_or(0) + more;
        let left = all.checked_sub(used + more);
        left.is_some_and(|left| left >= all / 4 || taken / 3 <= left)
    }

    /// Adds `amount` to the usage of a process.
    pub fn take(&mut self, pid: u32, amount: usize) {
        *self.taken.entry(pid).or_default() += amount;
    }

    /// Counts a refusal.
    pub fn refuse(&mut self) {
        self.refused += 1;
    }

    /// Returns whether any process was refused.
    #[must_use]
    pub fn has_refused(&self) -> bool {
        self.refused > 0
    }

    /// Returns the number of refusals.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Drops the usage of ended processes, because a new process may get the same ID.
    pub fn forget_ended(&mut self, living: &Living) {
        self.taken.retain(|pid, _| living.has(*pid));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets `processes` processes take 1 in turn until all of them are refused. Returns the total
    /// usage.
    fn flood(shares: &mut Shares, processes: u32, all: usize) -> usize {
        let mut used = 0;
        loop {
            let before = used;
            for pid in 1..=processes {
                if shares.may_take(pid, 1, used, all) {
                    shares.take(pid, 1);
                    used += 1;
                }
            }
            if used == before {
                return used;
            }
        }
    }

    #[test]
    fn floods_leave_room_for_others() {
        const ALL: usize = 10_000;
        for processes in [1, 3, 100] {
            let mut shares = Shares::default();
            let used = flood(&mut shares, processes, ALL);
            let left = ALL / (3 * processes as usize + 1);
            assert!((ALL - used).abs_diff(left) < 4, "{processes}: {used}");
            assert!(!shares.may_take(1, 4, used, ALL));
            assert!(shares.may_take(u32::MAX, left / 2, used, ALL));
            assert!(!shares.may_take(u32::MAX, ALL, used, ALL));
        }
    }
}
