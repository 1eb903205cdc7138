//! The addresses that names are sought for.

use std::ops::Range;

/// Sorted, distinct addresses.
///
/// Symbol sources are far larger than the set of addresses that a profile
/// holds, so they are streamed past the addresses and never kept.
#[derive(Debug)]
pub(crate) struct Wanted(Vec<u64>);

impl Wanted {
    /// Sorts the addresses and drops repeated ones.
    pub(crate) fn new(mut addresses: Vec<u64>) -> Self {
        addresses.sort_unstable();
        addresses.dedup();
        Self(addresses)
    }

    /// The addresses in ascending order.
    pub(crate) fn addresses(&self) -> &[u64] {
        &self.0
    }

    /// Index of the first address at or above `address`.
    pub(crate) fn first_from(&self, address: u64) -> usize {
        self.0.partition_point(|&wanted| wanted < address)
    }

    /// Indexes of the addresses in `[start, start + size)`.
    pub(crate) fn covered(&self, start: u64, size: u64) -> Range<usize> {
        self.first_from(start)..self.first_from(start.saturating_add(size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_include_their_start_and_not_their_end() {
        let wanted = Wanted::new(vec![30, 10, 20, 10]);
        assert_eq!(wanted.addresses(), [10, 20, 30]);
        assert_eq!(wanted.covered(10, 10), 0..1);
        assert_eq!(wanted.covered(11, 9), 1..1);
        assert_eq!(wanted.covered(0, u64::MAX), 0..3);
        assert_eq!(wanted.covered(u64::MAX, u64::MAX), 3..3);
    }
}
