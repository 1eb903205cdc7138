//! Sums by stack of a program's drained counts.
//!
//! A sum settles once its stacks, its waker and its resource have arrived. The stacks then replace
//! the IDs. The process is dropped from the key unless processes are distinguished. Counts of
//! short-lived processes therefore add to the sums of earlier processes.

use std::collections::HashMap;
use std::num::NonZeroU64;

use bpf::types::{NO_OBJECT, STACK_MISSED, StackKey, Tally, WAKER_MISSED, WaitEnd};
use profile::{Id, RowMap, Table, ThreadId};

use crate::record::runtime_names::{KernelName, RuntimeNames};
use crate::record::stacks::{Captured, Stacks};
use crate::record::wakers::Wakers;
use waits::Objects;

/// Key of a settled sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// ID of the thread. Process ID and thread ID are 0 unless processes are distinguished.
    pub(crate) thread: ThreadId,
    pub(crate) comm: Id<KernelName>,
    pub(crate) user: Captured,
    pub(crate) kernel: Captured,
    /// First of the IDs that stand for the same waker.
    pub(crate) waker: u64,
    /// First of the IDs that stand for the same resource.
    pub(crate) object: u64,
    /// Way in which the wait ended.
    pub(crate) end: WaitEnd,
    /// Time that each sampled interval stands for, in ns; `None` for measured intervals.
    pub(crate) period: Option<NonZeroU64>,
}

/// Stacks, wakers and resources that have arrived.
#[derive(Clone, Copy)]
pub(crate) struct Arrived<'a> {
    pub(crate) stacks: &'a Stacks,
    pub(crate) wakers: &'a Wakers,
    pub(crate) objects: &'a Objects,
    pub(crate) names: &'a RuntimeNames,
}

/// Sums that have settled.
#[derive(Default)]
pub(crate) struct Settled {
    pub(crate) sums: RowMap<Key, Tally>,
    pub(crate) comms: Table<KernelName>,
}

/// Sums of all counts that were drained.
pub(crate) struct Sums {
    per_process: bool,
    per_thread: bool,
    settled: Settled,
    /// Sums that wait for a stack, the waker or the resource to arrive.
    open: HashMap<StackKey, Tally>,
}

impl Sums {
    pub(crate) fn new(per_process: bool, per_thread: bool) -> Sums {
        Sums {
            per_process,
            per_thread,
            settled: Settled::default(),
            open: HashMap::new(),
        }
    }

    /// Adds counts to the sum with this key.
    pub(crate) fn add(&mut self, key: StackKey, tally: &Tally, arrived: Arrived<'_>) {
        match self.settled_key(key, arrived) {
            Some(key) => add(self.settled.sums.entry(key), tally),
            None => add(self.open.entry(key).or_default(), tally),
        }
    }

    /// Returns the key of a settled sum, if the stacks, the waker and the resource have arrived.
    pub(crate) fn settled_key(&mut self, key: StackKey, arrived: Arrived<'_>) -> Option<Key> {
        let [user, kernel] = [key.user, key.kernel].map(|id| arrived.stacks.captured(id));
        let (user, kernel) = (user?, kernel?);
        let waker = arrived.wakers.first(key.waker)?;
        let object = arrived.objects.first(key.object)?;
        let StackKey {
            pid,
            tid,
            wait_end,
            period,
            ..
        } = key;
        let name = arrived.names.kernel_name(ThreadId { pid, tid }, key.comm);
        Some(Key {
            thread: if self.per_process {
                let tid = if self.per_thread { tid } else { 0 };
                ThreadId { pid, tid }
            } else {
                ThreadId::default()
            },
            comm: self.settled.comms.id(name),
            user,
            kernel,
            waker,
            object,
            end: WaitEnd(wait_end as u32),
            period: NonZeroU64::new(period),
        })
    }

    /// Settles the open sums that can settle. An ID that has not arrived counts as missed if
    /// `is_lost` returns true for its process and the ID.
    pub(crate) fn settle(&mut self, arrived: Arrived<'_>, is_lost: impl Fn(u32, u64) -> bool) {
        for (key, tally) in std::mem::take(&mut self.open) {
            self.add(without_lost(key, arrived, &is_lost), &tally, arrived);
        }
    }

    /// Returns the IDs of stacks and wakers in the open sums.
    pub(crate) fn open_ids(&self) -> impl Iterator<Item = u64> {
        let ids = |key: &StackKey| [key.user, key.kernel, key.waker];
        self.open.keys().flat_map(ids)
    }

    /// Returns the sum of all counts over all stacks.
    pub(crate) fn total(&self) -> Tally {
        let tallies = self.settled.sums.values().chain(self.open.values());
        tallies.fold(Tally::default(), |mut sum, tally| {
            add(&mut sum, tally);
            sum
        })
    }

    /// Returns the kernel's name of a settled key's thread.
    pub(crate) fn comm(&self, key: &Key) -> &KernelName {
        &self.settled.comms[key.comm]
    }

    /// Returns the thread names of settled keys.
    pub(crate) fn comms_mut(&mut self) -> &mut Table<KernelName> {
        &mut self.settled.comms
    }

    /// Replaces all sums.
    pub(crate) fn replace(&mut self, sums: RowMap<Key, Tally>) {
        self.settled.sums = sums;
        self.open = HashMap::new();
    }

    /// Takes the sums that have settled.
    pub(crate) fn take_settled(&mut self) -> Settled {
        std::mem::take(&mut self.settled)
    }
}

/// Replaces the IDs of a key that have not arrived and of which `is_lost` returns true for the
/// process and the ID: they count as missed.
pub(crate) fn without_lost(
    mut key: StackKey,
    arrived: Arrived<'_>,
    is_lost: impl Fn(u32, u64) -> bool,
) -> StackKey {
    for id in [&mut key.user, &mut key.kernel] {
        if arrived.stacks.captured(*id).is_none() && is_lost(key.pid, *id) {
            *id = STACK_MISSED;
        }
    }
    if !arrived.wakers.has(key.waker) && is_lost(key.pid, key.waker) {
        key.waker = WAKER_MISSED;
    }
    if arrived.objects.first(key.object).is_none() && is_lost(key.pid, key.object) {
        key.object = NO_OBJECT;
    }
    key
}

pub(crate) fn add(sum: &mut Tally, tally: &Tally) {
    sum.shortest = match sum.events {
        0 => tally.shortest,
        _ => sum.shortest.min(tally.shortest),
    };
    sum.events += tally.events;
    sum.blocked += tally.blocked;
    sum.squares = sum.squares.saturating_add(tally.squares);
    sum.runnable += tally.runnable;
    sum.longest = sum.longest.max(tally.longest);
}

#[cfg(test)]
mod tests {
    use process::Process;

    use crate::record::stacks::UserStack;

    use super::*;

    const ONE: Tally = Tally {
        events: 1,
        blocked: 5,
        runnable: 2,
        longest: 7,
        shortest: 7,
        squares: 3,
    };

    fn key(pid: u32, user: u64) -> StackKey {
        StackKey {
            pid,
            user,
            ..StackKey::default()
        }
    }

    /// Returns two stacks with the same frames and the IDs 10 and 11.
    fn two_of_the_same() -> Stacks {
        let mut stacks = Stacks::new();
        for id in [10, 11] {
            // The process does not exist, so its addresses have no code.
            let process = Process {
                pid: u32::MAX,
                instance: 1,
            };
            stacks.add_user(id, process, UserStack::from_frames(&[1], true));
        }
        stacks
    }

    fn arrived<'a>(
        stacks: &'a Stacks,
        wakers: &'a Wakers,
        objects: &'a Objects,
        names: &'a RuntimeNames,
    ) -> Arrived<'a> {
        Arrived {
            stacks,
            wakers,
            objects,
            names,
        }
    }

    #[test]
    fn processes_that_do_the_same_have_one_sum() {
        let (stacks, wakers) = (two_of_the_same(), Wakers::new(false, true));
        let (objects, names) = (Objects::new(false), RuntimeNames::default());
        let arrived = arrived(&stacks, &wakers, &objects, &names);
        for (per_process, expected) in [(false, 1), (true, 2)] {
            let mut sums = Sums::new(per_process, true);
            sums.add(key(1, 10), &ONE, arrived);
            sums.add(key(2, 11), &ONE, arrived);
            assert_eq!(sums.total().blocked, 10);
            let settled = sums.take_settled().sums;
            assert_eq!(settled.len(), expected);
            let user = stacks.captured(10);
            assert!(settled.keys().all(|key| Some(key.user) == user));
        }
    }

    #[test]
    fn a_sum_waits_for_its_stack_unless_that_is_lost() {
        let (mut stacks, wakers) = (two_of_the_same(), Wakers::new(false, true));
        let (objects, names) = (Objects::new(false), RuntimeNames::default());
        let mut sums = Sums::new(false, true);
        for (pid, user) in [(1, 12), (2, 13)] {
            sums.add(
                key(pid, user),
                &ONE,
                arrived(&stacks, &wakers, &objects, &names),
            );
        }
        sums.settle(arrived(&stacks, &wakers, &objects, &names), |_, _| false);
        assert_eq!((sums.settled.sums.len(), sums.open.len()), (0, 2));
        assert!(sums.open_ids().any(|id| id == 13));
        let process = Process {
            pid: u32::MAX,
            instance: 1,
        };
        stacks.add_user(12, process, UserStack::from_frames(&[1], true));
        sums.settle(arrived(&stacks, &wakers, &objects, &names), |pid, id| {
            (pid, id) == (2, 13)
        });
        let settled = sums.take_settled().sums;
        let users: Vec<Captured> = settled.keys().map(|key| key.user).collect();
        assert_eq!(users.len(), 2);
        assert!(users.contains(&Captured::Missed));
        assert!(users.contains(&stacks.captured(10).unwrap_or(Captured::Nothing)));
    }
}
