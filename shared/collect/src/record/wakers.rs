//! Who ended waits: the hops and chains that a program sends, each once.

use std::collections::{HashMap, HashSet};

use bpf::types::{COMM_LENGTH, WAKER_UNWANTED, WakerChainEvent, WakerEvent};
use profile::ThreadId;

use crate::record::stacks::{Captured, Stacks};
use process::{Interner, Living, Shares};

/// Hops and chains kept at most; what comes after them counts as missing.
const MOST_KEPT: usize = 1 << 20;

/// Every waker seen so far, by ID.
pub(crate) struct Wakers {
    per_process: bool,
    /// Each belongs to a process.
    pub(crate) hops: Interner<Hop, u32>,
    /// Those of which a stack has not come yet.
    new: HashMap<u64, WakerEvent>,
    pub(crate) chains: HashMap<u64, Box<[u64]>>,
    /// Hops of each process.
    shares: Shares,
}

/// A thread or an interrupt that ended a wait.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Hop {
    pub(crate) context: u32,
    /// 0 each unless processes are told apart.
    pub(crate) thread: ThreadId,
    pub(crate) comm: [u8; COMM_LENGTH],
    pub(crate) user: Captured,
    pub(crate) kernel: Captured,
}

impl Wakers {
    pub(crate) fn new(per_process: bool) -> Wakers {
        Wakers {
            per_process,
            hops: Interner::new(),
            new: HashMap::new(),
            chains: HashMap::new(),
            shares: Shares::default(),
        }
    }

    /// Keeps a hop that a program sent.
    pub(crate) fn add(&mut self, event: WakerEvent) {
        let kept = self.hops.id_count() + self.new.len();
        if self.shares.may_take(event.pid, 1, kept, MOST_KEPT) {
            self.shares.take(event.pid, 1);
            self.new.insert(event.id, event);
        } else {
            self.shares.refuse();
        }
    }

    /// Keeps a chain that a program sent.
    pub(crate) fn add_chain(&mut self, event: &WakerChainEvent) {
        if self.chains.len() < MOST_KEPT {
            let hops = event.hops.iter().take(event.hop_count as usize);
            self.chains.insert(event.id, hops.copied().collect());
        }
    }

    /// Takes in the hops whose stacks have come. One that has not counts as
    /// missed if `is_lost` says so of the process and the ID.
    pub(crate) fn settle(&mut self, stacks: &Stacks, is_lost: impl Fn(u32, u64) -> bool) {
        let Wakers {
            per_process,
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
            let hop = Hop::new(event, user, kernel, *per_process);
            hops.insert(*id, hop, event.pid);
            false
        });
    }

    /// The IDs of the stacks of hops that could not settle yet.
    pub(crate) fn open_ids(&self) -> impl Iterator<Item = u64> {
        self.new
            .values()
            .flat_map(|event| [event.user, event.kernel])
    }

    /// The first ID of the same hop, once it has settled; chains and what
    /// stands for no hop have but one.
    pub(crate) fn first(&self, id: u64) -> Option<u64> {
        match id <= WAKER_UNWANTED || self.chains.contains_key(&id) {
            true => Some(id),
            false => self.hops.first(id),
        }
    }

    /// Whether what an ID stands for has come.
    pub(crate) fn has(&self, id: u64) -> bool {
        self.new.contains_key(&id) || self.first(id).is_some()
    }

    /// The IDs that nobody will use any more, unless a thread's record holds
    /// them: those of processes that have ended.
    pub(crate) fn unused(&self, living: &Living) -> impl Iterator<Item = u64> {
        // Chains refer to hops for good.
        let keeps_all = !self.chains.is_empty();
        self.hops
            .ownerless(move |pid| keeps_all || living.has(*pid))
    }

    /// Whether a hop was not kept as there was no room, or its process had its share.
    pub(crate) fn has_refused(&self) -> bool {
        self.shares.has_refused()
    }

    /// Forgets the shares of processes that have ended.
    pub(crate) fn forget_ended(&mut self, living: &Living) {
        self.shares.forget_ended(living);
    }

    /// Forgets these IDs of hops that have another.
    pub(crate) fn forget(&mut self, ids: &HashSet<u64>) {
        self.hops.forget(ids);
    }

    /// The stacks of all hops.
    pub(crate) fn stacks(&self) -> impl Iterator<Item = Captured> {
        self.hops.things().flat_map(|hop| [hop.user, hop.kernel])
    }
}

impl Hop {
    fn new(event: &WakerEvent, user: Captured, kernel: Captured, per_process: bool) -> Hop {
        let (pid, tid) = match per_process {
            true => (event.pid, event.tid),
            false => (0, 0),
        };
        Hop {
            context: event.context,
            thread: ThreadId { pid, tid },
            comm: event.comm,
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
        let stacks = Stacks::new();
        let mut wakers = Wakers::new(false);
        for (id, pid) in [(10, std::process::id()), (11, u32::MAX)] {
            assert!(!wakers.has(id));
            wakers.add(WakerEvent {
                id,
                pid,
                ..WakerEvent::default()
            });
            wakers.settle(&stacks, |_, _| false);
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
        wakers.settle(&stacks, |_, _| false);
        wakers.add_chain(&WakerChainEvent {
            id: 20,
            ..WakerChainEvent::default()
        });
        assert_eq!(wakers.unused(&living).count(), 0);
    }
}
