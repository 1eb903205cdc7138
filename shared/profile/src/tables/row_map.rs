//! Map whose rows stay in the order in which their keys were added.

use std::hash::{BuildHasher, Hash};
use std::ops::AddAssign;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::Id;

/// Map like an `IndexMap`, for millions of rows: its hash table takes five bytes a row instead
/// of seventeen.
#[derive(Clone, Debug)]
pub struct RowMap<Key, Value> {
    rows: Vec<(Key, Value)>,
    /// Places in `rows`, by key.
    places: HashTable<u32>,
    hasher: RandomState,
}

impl<Key, Value> Default for RowMap<Key, Value> {
    fn default() -> Self {
        RowMap {
            rows: Vec::new(),
            places: HashTable::new(),
            hasher: RandomState::default(),
        }
    }
}

impl<Key: Eq + Hash, Value: Default> RowMap<Key, Value> {
    /// Returns the number of a key; adds the key with a default value if it is new.
    pub fn id(&mut self, key: Key) -> Id<Key> {
        let RowMap {
            rows,
            places,
            hasher,
        } = self;
        let is_same = |&place: &u32| rows[place as usize].0 == key;
        let hash = |&place: &u32| hasher.hash_one(&rows[place as usize].0);
        // A map of 2^32 rows exceeds the memory limit of profiles.
        let next = u32::try_from(rows.len()).unwrap_or(u32::MAX);
        let entry = places.entry(hasher.hash_one(&key), is_same, hash);
        let place = *entry.or_insert(next).get();
        if place == next {
            rows.push((key, Value::default()));
        }
        Id::new(place as usize)
    }

    /// Adds to the value of a key, and returns its number; adds the key if it is new.
    pub fn add(&mut self, key: Key, more: Value) -> Id<Key>
    where
        Value: AddAssign,
    {
        let id = self.id(key);
        self.rows[id.index()].1 += more;
        id
    }

    /// Returns the value of a key; adds the key with a default value if it is new.
    pub fn entry(&mut self, key: Key) -> &mut Value {
        let id = self.id(key);
        &mut self.rows[id.index()].1
    }
}

impl<Key: Eq + Hash, Value> RowMap<Key, Value> {
    /// Replaces each key by the result of `key`, and removes the rows with the result `None`. Rows
    /// with equal new keys become one row, in the place of the first. The function needs no second
    /// map. `placed` gets the new number of each row, in the order of the old rows.
    pub fn replace_keys(
        &mut self,
        mut key: impl FnMut(&Key) -> Option<Key>,
        mut placed: impl FnMut(Option<Id<Key>>),
    ) where
        Value: AddAssign + Default,
    {
        let RowMap {
            rows,
            places,
            hasher,
        } = self;
        places.clear();
        let mut kept = 0;
        for row in 0..rows.len() {
            let Some(key) = key(&rows[row].0) else {
                placed(None);
                continue;
            };
            let value = std::mem::take(&mut rows[row].1);
            let is_same = |&place: &u32| rows[place as usize].0 == key;
            let hash = |&place: &u32| hasher.hash_one(&rows[place as usize].0);
            let entry = places.entry(hasher.hash_one(&key), is_same, hash);
            let next = u32::try_from(kept).unwrap_or(u32::MAX);
            let place = *entry.or_insert(next).get();
            placed(Some(Id::new(place as usize)));
            if place == next {
                rows[kept] = (key, value);
                kept += 1;
            } else {
                rows[place as usize].1 += value;
            }
        }
        rows.truncate(kept);
    }

    /// Returns the place of a key, counted from 0, if the key exists.
    pub fn place(&self, key: &Key) -> Option<usize> {
        let is_same = |&place: &u32| self.rows[place as usize].0 == *key;
        let place = self.places.find(self.hasher.hash_one(key), is_same)?;
        Some(*place as usize)
    }

    /// Returns the value of a key, if the key exists.
    pub fn get(&self, key: &Key) -> Option<&Value> {
        self.place(key).map(|place| &self.rows[place].1)
    }
}

impl<Key, Value> RowMap<Key, Value> {
    /// Returns the keys and values, in the order of their numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Key, &Value)> {
        self.rows.iter().map(|(key, value)| (key, value))
    }

    /// Returns the row with a number, if it exists.
    pub fn row(&self, id: Id<Key>) -> Option<(&Key, &Value)> {
        self.rows.get(id.index()).map(|(key, value)| (key, value))
    }

    /// Returns the keys, in the order of their numbers.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &Key> {
        self.rows.iter().map(|(key, _)| key)
    }

    /// Returns the values, in the order of their numbers.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &Value> + Clone {
        self.rows.iter().map(|(_, value)| value)
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the rows without the hash table.
    pub fn into_rows(self) -> Vec<(Key, Value)> {
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_found_again() {
        let mut map: RowMap<u32, u32> = RowMap::default();
        (0..100).for_each(|key| *map.entry(key) = key + 1);
        let mut places = Vec::new();
        let kept = |key: &u32| (key % 7 == 3).then_some(*key);
        map.replace_keys(kept, |number| places.push(number.map(Id::index)));
        assert!(
            map.keys()
                .eq(&[3, 10, 17, 24, 31, 38, 45, 52, 59, 66, 73, 80, 87, 94])
        );
        assert_eq!([10, 11].map(|key| map.place(&key)), [Some(1), None]);
        assert_eq!([3, 4, 94].map(|row| places[row]), [Some(0), None, Some(13)]);
        assert_eq!((*map.entry(94), *map.entry(95), map.len()), (95, 0, 15));
    }

    #[test]
    fn rows_whose_keys_become_the_same_are_one() {
        let mut map: RowMap<u32, u32> = RowMap::default();
        (0..100).for_each(|key| *map.entry(key) = 1);
        let mut asked = 0;
        let mut places = Vec::new();
        let new = |key: &u32| {
            asked += 1;
            Some(100 - key % 3)
        };
        map.replace_keys(new, |number| places.extend(number.map(Id::index)));
        assert!(places.into_iter().eq((0..100).map(|row| row % 3)));
        assert!(map.iter().eq([(&100, &34), (&99, &33), (&98, &33)]));
        assert_eq!((asked, map.get(&99), map.get(&7)), (100, Some(&33), None));
        // A new key may equal the old key of another row.
        map.replace_keys(|key| Some(key - 1), |_| ());
        assert!(map.keys().eq(&[99, 98, 97]));
        assert_eq!((*map.entry(97), *map.entry(100), map.len()), (33, 0, 4));
    }
}
