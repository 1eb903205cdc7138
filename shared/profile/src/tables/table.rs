//! Tables of distinct rows, to which other rows refer by number.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::ops::Index;

use foldhash::fast::RandomState;
use indexmap::IndexSet;

/// Number of a row in its [`Table`]. An `Option` of a number takes no more memory.
pub struct Id<Row> {
    /// Place of the row, counted from 1.
    place: NonZeroU32,
    row: PhantomData<fn() -> Row>,
}

impl<Row> Id<Row> {
    /// Returns the place of the row, counted from 0.
    #[must_use]
    pub fn index(self) -> usize {
        self.place.get() as usize - 1
    }

    pub(crate) fn new(index: usize) -> Id<Row> {
        // A table of 2^32 rows exceeds the memory limit of profiles.
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        Id {
            place: NonZeroU32::MIN.saturating_add(index),
            row: PhantomData,
        }
    }
}

// Derived implementations would require the same traits of `Row`.
impl<Row> Clone for Id<Row> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Row> Copy for Id<Row> {}

impl<Row> PartialEq for Id<Row> {
    fn eq(&self, other: &Self) -> bool {
        self.place == other.place
    }
}

impl<Row> Eq for Id<Row> {}

impl<Row> PartialOrd for Id<Row> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<Row> Ord for Id<Row> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place.cmp(&other.place)
    }
}

impl<Row> Hash for Id<Row> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.place.hash(hasher);
    }
}

impl<Row> fmt::Debug for Id<Row> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "#{}", self.index())
    }
}

/// Distinct rows, in the order in which they were added.
#[derive(Clone, Debug)]
pub struct Table<Row> {
    rows: IndexSet<Row, RandomState>,
}

impl<Row> Default for Table<Row> {
    fn default() -> Self {
        Table {
            rows: IndexSet::default(),
        }
    }
}

impl<Row: Eq + Hash> Table<Row> {
    /// Returns the number of a row; adds it if it is new.
    pub fn id(&mut self, row: Row) -> Id<Row> {
        Id::new(self.rows.insert_full(row).0)
    }

    /// Returns the number of a row, if it exists.
    #[must_use]
    pub fn get(&self, row: &Row) -> Option<Id<Row>> {
        self.rows.get_index_of(row).map(Id::new)
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the rows, in the order of their numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Row> {
        self.rows.iter()
    }
}

impl<Row: Borrow<str> + Eq + Hash + for<'a> From<&'a str>> Table<Row> {
    /// Returns the number of a text; adds the text if it is new. [`Text`](crate::Text) is
    /// cleaned.
    pub fn text(&mut self, text: &str) -> Id<Row> {
        match self.rows.get_index_of(text) {
            Some(index) => Id::new(index),
            None => self.id(text.into()),
        }
    }
}

/// Returns the row with a number.
///
/// # Panics
/// The number belongs to another table.
impl<Row> Index<Id<Row>> for Table<Row> {
    type Output = Row;

    fn index(&self, id: Id<Row>) -> &Row {
        &self.rows[id.index()]
    }
}
