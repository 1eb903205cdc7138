//! Wakers that programs report: hops, and chains of hops. Programs send each of them once.

use std::collections::{HashMap, HashSet};

use bpf::types::{WAKER_UNWANTED, WakerChainEvent, WakerEvent};
use profile::ThreadId;

use crate::record::runtime_names::{KernelName, RuntimeNames};
use crate::record::stacks::{Captured, Stacks};
use process::{Interner, Living, Shares};

/// Maximum number of hops, and of chains, that are kept. Later hops and chains count as missed.
const MAX_KEPT: usize = 1 << 20;

/// Wakers that programs have sent, by ID.
pub(crate) struct Wakers {
    per_process: bool,
    per_thread: bool,
    /// Settled hops, each with its process.
    pub(crate) hops: Interner<Hop, u32>,
    /// Hops that wait for a stack to arrive.
    new: HashMap<u64, WakerEvent>,
    pub(crate) chains: HashMap<u64, Box<[u64]>>,
    /// Number of hops that each process takes.
    shares: Shares,
}

/// Thread or interrupt that ended a wait.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Hop {
    pub(crate) context: u32,
    /// ID of the thread. Process ID and thread ID are 0 unless processes are distinguished.
    pub(crate) thread: ThreadId,
    pub(crate) name: KernelName,
    pub(crate) user: Captured,
    pub(crate) kernel: Captured,
}

impl Wakers {
    pub(crate) fn new(per_process: bool, per_thread: bool) -> Wakers {
        Wakers {
            per_process,
            per_thread,
            hops: Interner::new(),
            new: HashMap::new(),
            chains: HashMap::new(),
            shares: Shares::default(),
        }
    }

    /// Adds a hop that a program sent.
    pub(crate) fn add(&mut self, event: WakerEvent) {
        let kept = self.hops.id_count() + self.new.len();
        if self.shares.may_take(event.pid, 1, kept, MAX_KEPT) {
            self.shares.take(event.pid, 1);
            self.new.insert(event.id, event);
        } else {
            self.shares.refuse();
        }
    }

    /// Adds a chain that a program sent.
    pub(crate) fn add_chain(&mut self, event: &WakerChainEvent) {
        if self.chains.len() < MAX_KEPT {
            let hops = event.hops.iter().take(event.hop_count as usize);
            self.chains.insert(event.id, hops.copied().collect());
        }
    }

    /// Settles the hops whose stacks have arrived. A stack that has not arrived counts as missed if
    /// `is_lost` returns true for its process and ID.
    pub(crate) fn settle(
        &mut self,
        stacks: &Stacks,
        names: &RuntimeNames,
        is_lost: impl Fn(u32, u64) -> bool,
    ) {
        let Wakers {
            per_process,
            per_thread,
            hops,
            new,
            ..
        } = self;
        new.retain(|id, event| {
            let [user, kernel] = [event.user, event.kernel].map(|id| {
                let lost = || is_lost(event.pid, id).then_some(Captured::Missed);
                stacks.captured(id).or_else(lost)
            });
            let (Some(user), Some(kernel)) = (user, kernel) else {
                return true;
            };
            let (per_process, per_thread) = (*per_process, *per_thread);
            let hop = Hop::new(event, user, kernel, per_process, per_thread, names);
            hops.insert(*id, hop, event.pid);
            false
        });
    }

    /// Returns the IDs of the stacks of hops that have not settled.
    pub(crate) fn open_ids(&self) -> impl Iterator<Item = u64> {
        self.new
            .values()
            .flat_map(|event| [event.user, event.kernel])
    }

    /// Returns the first of the IDs that stand for the same hop, once the hop has settled. A chain
    /// has only one ID, and so has an ID without a hop.
    pub(crate) fn first(&self, id: u64) -> Option<u64> {
        if id <= WAKER_UNWANTED || self.chains.contains_key(&id) {
            Some(id)
        } else {
            self.hops.first(id)
        }
    }

    /// Returns whether the hop or chain with this ID has arrived.
    pub(crate) fn has(&self, id: u64) -> bool {
        self.new.contains_key(&id) || self.first(id).is_some()
    }

    /// Returns the IDs of processes that have ended, which no program will use again. A thread's
    /// record may still contain such an ID.
    pub(crate) fn unused(&self, living: &Living) -> impl Iterator<Item = u64> {
        // Chains refer to hops forever.
        let keeps_all = !self.chains.is_empty();
        self.hops
            .ownerless(move |pid| keeps_all || living.has(*pid))
    }

    /// Returns whether a hop was refused, because the capacity or the share of its process was used
    /// up.
    pub(crate) fn has_refused(&self) -> bool {
        self.shares.has_refused()
    }

    /// Removes the shares of processes that have ended.
    pub(crate) fn forget_ended(&mut self, living: &Living) {
        self.shares.forget_ended(living);
    }

    /// Removes these IDs, except the first IDs of hops.
    pub(crate) fn forget(&mut self, ids: &HashSet<u64>) {
        self.hops.forget(ids);
    }

    /// Returns the stacks of all hops.
    pub(crate) fn stacks(&self) -> impl Iterator<Item = Captured> {
        self.hops.things().flat_map(|hop| [hop.user, hop.kernel])
    }
}

impl Hop {
    fn new(
        event: &WakerEvent,
        user: Captured,
        kernel: Captured,
        per_process: bool,
        per_thread: bool,
        names: &RuntimeNames,
    ) -> Hop {
        let thread = ThreadId {
            pid: event.pid,
            tid: event.tid,
        };
        let name = names.kernel_name(thread, event.comm);
        let (pid, tid) = if per_process {
            (event.pid, if per_thread { event.tid } else { 0 })
        } else {
            (0, 0)
        };
        Hop {
            context: event.context,
            thread: ThreadId { pid, tid },
            name,
            user,
            kernel,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn hops_go_with_their_processes_unless_chains_refer_to_them() {
        let (stacks, names) = (Stacks::new(), RuntimeNames::default());
        let mut wakers = Wakers::new(false, true);
        for (id, pid) in [(10, std::process::id()), (11, u32::MAX)] {
            assert!(!wakers.has(id));
            wakers.add(WakerEvent {
                id,
                pid,
                ..WakerEvent::default()
            });
            wakers.settle(&stacks, &names, |_, _| false);
        }
        let living = Living::read().unwrap();
        let unused: HashSet<u64> = wakers.unused(&living).collect();
        assert_eq!(unused, HashSet::from([11]));
        wakers.forget(&unused);
        assert_eq!([10, 11].map(|id| wakers.first(id)), [Some(10), None]);
        wakers.add(WakerEvent {
            id: 11,
            pid: u32::MAX,
            ..WakerEvent::default()
        });
        wakers.settle(&stacks, &names, |_, _| false);
        wakers.add_chain(&WakerChainEvent {
            id: 20,
            ..WakerChainEvent::default()
        });
        assert_eq!(wakers.unused(&living).count(), 0);
    }
}
