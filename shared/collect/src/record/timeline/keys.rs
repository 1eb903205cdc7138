//! Keys to which rows of a timeline refer.

use std::collections::HashMap;

use bpf::types::StackKey;

use crate::record::counts::Arrived;
use crate::record::sums::{Key, Sums, without_lost};

/// Keys of rows, by their numbers.
#[derive(Default)]
pub(crate) struct Keys {
    numbers: HashMap<StackKey, u32>,
    /// Settled keys; `None` if something of the key has not arrived.
    settled: Vec<Option<Key>>,
    open: Vec<(u32, StackKey)>,
}

impl Keys {
    /// Returns keys that have settled.
    pub(crate) fn from_settled(settled: Vec<Option<Key>>) -> Keys {
        Keys {
            settled,
            ..Keys::default()
        }
    }

    /// Returns the number of a key.
    pub(crate) fn number(&mut self, key: StackKey) -> u32 {
        *self.numbers.entry(key).or_insert_with(|| {
            let number = self.settled.len() as u32;
            self.settled.push(None);
            self.open.push((number, key));
            number
        })
    }

    /// Settles the keys of which everything has arrived, as [`Sums::settle`] does.
    pub(crate) fn settle(
        &mut self,
        sums: &mut Sums,
        arrived: Arrived<'_>,
        is_lost: impl Fn(u32, u64) -> bool,
    ) {
        let Keys { settled, open, .. } = self;
        open.retain(|&(number, key)| {
            let key = sums.settled_key(without_lost(key, arrived, &is_lost), arrived);
            settled[number as usize] = key;
            key.is_none()
        });
    }

    /// Forgets which IDs the settled keys had. The IDs may be used again.
    pub(crate) fn forget_ids(&mut self) {
        let Keys { numbers, open, .. } = self;
        numbers.clear();
        numbers.extend(open.iter().map(|&(number, key)| (key, number)));
    }

    /// Forgets the IDs of all keys, because no more rows refer to them by ID.
    pub(crate) fn seal(&mut self) {
        self.numbers = HashMap::new();
        self.settled.shrink_to_fit();
        self.open.shrink_to_fit();
    }

    /// Returns the IDs of keys that could not settle yet.
    pub(crate) fn open_ids(&self) -> impl Iterator<Item = u64> {
        let open = self.open.iter();
        open.flat_map(|(_, key)| [key.user, key.kernel, key.waker])
    }

    /// Returns the number of keys.
    pub(crate) fn count(&self) -> u32 {
        self.settled.len() as u32
    }

    /// Returns the settled key with a number.
    pub(crate) fn get(&self, number: u32) -> Option<Key> {
        self.settled.get(number as usize).copied().flatten()
    }

    /// Returns the settled keys.
    pub(crate) fn settled(&self) -> impl Iterator<Item = Key> {
        self.settled.iter().copied().flatten()
    }
}
