//! Sums by stack, as they are drained from a program's counts.
//!
//! A sum settles once what its IDs stand for is known: they become the first IDs
//! of the same frames, and its process is left out unless processes are told
//! apart. So those that come and go add to the sums of those before them.

use std::collections::HashMap;

use bpf::types::{STACK_MISSED, StackKey, Tally};
use bpf::wakers::WAKER_MISSED;
use indexmap::IndexMap;

use crate::stacks::Stacks;
use crate::wakers::Wakers;

/// All sums so far.
pub(crate) struct Sums {
    per_process: bool,
    settled: IndexMap<StackKey, Tally>,
    /// Those of which a stack or the waker has not come yet.
    open: HashMap<StackKey, Tally>,
}

impl Sums {
    pub(crate) fn new(per_process: bool) -> Sums {
        Sums {
            per_process,
            settled: IndexMap::new(),
            open: HashMap::new(),
        }
    }

    /// Adds what was counted under `key`.
    pub(crate) fn add(&mut self, key: StackKey, tally: &Tally, stacks: &Stacks, wakers: &Wakers) {
        let [user, kernel] = [key.user, key.kernel].map(|id| stacks.first(id));
        let waker = wakers.first(key.waker);
        let mut translated = StackKey {
            user: user.unwrap_or(key.user),
            kernel: kernel.unwrap_or(key.kernel),
            waker: waker.unwrap_or(key.waker),
            ..key
        };
        let sum = if user.is_some() && kernel.is_some() && waker.is_some() {
            if !self.per_process {
                (translated.pid, translated.tid) = (0, 0);
            }
            self.settled.entry(translated).or_default()
        } else {
            self.open.entry(translated).or_default()
        };
        add(sum, tally);
    }

    /// Looks again at the sums that could not settle. What has not come counts
    /// as missed if `is_lost` says so of the process and the ID.
    pub(crate) fn settle(
        &mut self,
        stacks: &Stacks,
        wakers: &Wakers,
        is_lost: impl Fn(u32, u64) -> bool,
    ) {
        for (mut key, tally) in std::mem::take(&mut self.open) {
            for id in [&mut key.user, &mut key.kernel] {
                if stacks.first(*id).is_none() && is_lost(key.pid, *id) {
                    *id = STACK_MISSED;
                }
            }
            if !wakers.has(key.waker) && is_lost(key.pid, key.waker) {
                key.waker = WAKER_MISSED;
            }
            self.add(key, &tally, stacks, wakers);
        }
    }

    /// What was counted, without regard to stacks.
    pub(crate) fn tallies(&self) -> impl Iterator<Item = &Tally> {
        self.settled.values().chain(self.open.values())
    }

    /// Takes the sums that have settled.
    pub(crate) fn take_settled(&mut self) -> IndexMap<StackKey, Tally> {
        std::mem::take(&mut self.settled)
    }
}

/// Adds `tally` to `sum`.
fn add(sum: &mut Tally, tally: &Tally) {
    sum.events += tally.events;
    sum.blocked += tally.blocked;
    sum.runnable += tally.runnable;
    sum.longest = sum.longest.max(tally.longest);
}

#[cfg(test)]
mod tests {
    use symbolize::Process;

    use super::*;

    const ONE: Tally = Tally {
        events: 1,
        blocked: 5,
        runnable: 2,
        longest: 7,
    };

    fn key(pid: u32, user: u64) -> StackKey {
        StackKey {
            pid,
            user,
            ..StackKey::default()
        }
    }

    /// Stacks of the same frames, by the IDs 10 and 11.
    fn two_of_the_same() -> Stacks {
        let mut stacks = Stacks::new();
        for id in [10, 11] {
            // In no process that there is: addresses of nothing.
            let process = Process {
                pid: u32::MAX,
                instance: 1,
            };
            stacks.add_user(id, process, &[1], true, None);
        }
        stacks
    }

    #[test]
    fn processes_that_do_the_same_have_one_sum() {
        let (stacks, wakers) = (two_of_the_same(), Wakers::new(false));
        for (per_process, expected) in [(false, 1), (true, 2)] {
            let mut sums = Sums::new(per_process);
            sums.add(key(1, 10), &ONE, &stacks, &wakers);
            sums.add(key(2, 11), &ONE, &stacks, &wakers);
            assert_eq!(sums.tallies().map(|tally| tally.blocked).sum::<u64>(), 10);
            let settled = sums.take_settled();
            assert_eq!(settled.len(), expected);
            assert!(settled.keys().all(|key| key.user == 10));
        }
    }

    #[test]
    fn a_sum_waits_for_its_stack_unless_that_is_lost() {
        let (mut stacks, wakers) = (two_of_the_same(), Wakers::new(false));
        let mut sums = Sums::new(false);
        for (pid, user) in [(1, 12), (2, 13)] {
            sums.add(key(pid, user), &ONE, &stacks, &wakers);
        }
        sums.settle(&stacks, &wakers, |_, _| false);
        assert_eq!((sums.settled.len(), sums.open.len()), (0, 2));
        let process = Process {
            pid: u32::MAX,
            instance: 1,
        };
        stacks.add_user(12, process, &[1], true, None);
        sums.settle(&stacks, &wakers, |pid, id| (pid, id) == (2, 13));
        let mut users: Vec<u64> = sums.take_settled().keys().map(|key| key.user).collect();
        users.sort_unstable();
        assert_eq!(users, [STACK_MISSED, 10]);
    }
}
