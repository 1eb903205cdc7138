//! Interner of things that BPF programs refer to by ID. Each thing is stored once, under one or
//! more IDs.
//!
//! Processes that come and go use the same things under different IDs. A thing stays under its
//! first ID. The other IDs are dropped once their owners have ended. Memory therefore grows with
//! the number of distinct things, and not with the length of the run.
//! number of distinct things, and not with the length of the run.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

/// ID of a thing that already has a first ID.
struct Alias<Owner> {
    first: u64,
    owner: Owner,
}

/// Things by ID, each stored once. The owner of an ID may use the ID again.
pub struct Interner<Thing, Owner> {
    things: HashMap<u64, Thing>,
    firsts: HashMap<Thing, u64>,
    aliases: HashMap<u64, Alias<Owner>>,
}

impl<Thing: Clone + Eq + Hash, Owner> Default for Interner<Thing, Owner> {
    fn default() -> Self {
        Interner::new()
    }
}

impl<Thing: Clone + Eq + Hash, Owner> Interner<Thing, Owner> {
    /// Returns an interner without things.
    #[must_use]
    pub fn new() -> Self {
        Interner {
            things: HashMap::new(),
            firsts: HashMap::new(),
            aliases: HashMap::new(),
        }
    }

    /// Stores a thing under `id`, unless `id` has a thing already.
    pub fn insert(&mut self, id: u64, thing: Thing, owner: Owner) {
        if self.first(id).is_some() {
            return;
        }
        if let Some(&first) = self.firsts.get(&thing) {
            self.aliases.insert(id, Alias { first, owner });
            return;
        }
        self.firsts.insert(thing.clone(), id);
        self.things.insert(id, thing);
    }

    /// Returns the first ID of the thing with this ID, if the thing has arrived.
    pub fn first(&self, id: u64) -> Option<u64> {
        if self.things.contains_key(&id) {
            Some(id)
        } else {
            self.aliases.get(&id).map(|alias| alias.first)
        }
    }

    /// Returns the thing with this ID.
    pub fn get(&self, id: u64) -> Option<&Thing> {
        self.things.get(&self.first(id)?)
    }

    /// Returns all things.
    pub fn things(&self) -> impl ExactSizeIterator<Item = &Thing> {
        self.things.values()
    }

    /// Returns the number of IDs.
    pub fn id_count(&self) -> usize {
        self.things.len() + self.aliases.len()
    }

    /// Returns the later IDs whose owners have ended. Such IDs can be dropped.
    pub fn ownerless(&self, lives: impl Fn(&Owner) -> bool) -> impl Iterator<Item = u64> {
        let ownerless = move |alias: &Alias<Owner>| !lives(&alias.owner);
        self.aliases
            .iter()
            .filter(move |(_, alias)| ownerless(alias))
            .map(|(id, _)| *id)
    }

    /// Drops these IDs, except the first IDs of things.
    pub fn forget(&mut self, ids: &HashSet<u64>) {
        self.aliases.retain(|id, _| !ids.contains(id));
        // After many processes have ended, the table is almost empty.
        if self.aliases.len() < self.aliases.capacity() / 8 {
            self.aliases.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_go_with_their_owners_and_things_stay() {
        let mut interner = Interner::new();
        for (id, owner) in [(1, 100), (2, 200), (3, 300)] {
            interner.insert(id, "main;read", owner);
        }
        let ownerless: HashSet<u64> = interner.ownerless(|owner| *owner == 300).collect();
        assert_eq!(ownerless, HashSet::from([2]));
        interner.forget(&ownerless);
        assert_eq!(
            [1, 2, 3].map(|id| interner.first(id)),
            [Some(1), None, Some(1)]
        );
    }
}
