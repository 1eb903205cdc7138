//! Addresses whose names are wanted.

use std::ops::Range;

/// Sorted, distinct addresses whose names are wanted.
///
/// Sources of symbols are far larger than the set of addresses in a profile. They are therefore
/// streamed past the addresses, and never kept.
#[derive(Debug)]
pub(crate) struct Wanted(Vec<u64>);

impl Wanted {
    /// Sorts the addresses and drops duplicates.
    pub(crate) fn new(mut addresses: Vec<u64>) -> Self {
        addresses.sort_unstable();
        addresses.dedup();
        Self(addresses)
    }

    /// Returns the addresses in ascending order.
    pub(crate) fn addresses(&self) -> &[u64] {
        &self.0
    }

    /// Returns the index of the first address at or above `address`.
    pub(crate) fn first_from(&self, address: u64) -> usize {
        self.0.partition_point(|&wanted| wanted < address)
    }

    /// Returns the indexes of the addresses in `[start, start + size)`.
    pub(crate) fn covered(&self, start: u64, size: u64) -> Range<usize> {
        self.first_from(start)..self.first_from(start.saturating_add(size))
    }
}
