//! Allocates ranges of an array.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Time between the release of a range and its next use. An unwind that began before the release
/// may still read the range. No unwind takes nearly as long.
const REST: Duration = Duration::from_secs(1);

/// Free and resting ranges of indexes.
#[derive(Debug)]
pub(crate) struct Ranges {
    /// Lengths of free ranges, by start. No two free ranges adjoin.
    free: BTreeMap<u32, u32>,
    /// Released ranges with the time of their release, oldest first.
    resting: Vec<(Instant, u32, u32)>,
}

impl Ranges {
    /// Returns an allocator of the indexes from `first` up to, but not including, `end`. All of
    /// them are free.
    pub(crate) fn new(first: u32, end: u32) -> Ranges {
        Ranges {
            free: BTreeMap::from([(first, end.saturating_sub(first))]),
            resting: Vec::new(),
        }
    }

    /// Takes `length` consecutive indexes, and returns the first; `None` if no free range is long
    /// enough.
    pub(crate) fn take(&mut self, length: u32) -> Option<u32> {
        self.wake(Instant::now());
        let (&start, &room) = self.free.iter().find(|&(_, &room)| room >= length)?;
        self.free.remove(&start);
        if room > length {
            self.free.insert(start + length, room - length);
        }
        Some(start)
    }

    /// Releases a range that [`Ranges::take`] returned.
    pub(crate) fn give_back(&mut self, start: u32, length: u32) {
        self.resting.push((Instant::now(), start, length));
    }

    fn wake(&mut self, now: Instant) {
        let rested = self
            .resting
            .partition_point(|(since, ..)| now.duration_since(*since) >= REST);
        for (_, start, length) in self.resting.drain(..rested).collect::<Vec<_>>() {
            self.free_range(start, length);
        }
    }

    fn free_range(&mut self, mut start: u32, mut length: u32) {
        if let Some((&before, &room)) = self.free.range(..start).next_back()
            && before + room == start
        {
            self.free.remove(&before);
            (start, length) = (before, room + length);
        }
        if let Some(room) = self.free.remove(&(start + length)) {
            length += room;
        }
        self.free.insert(start, length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hands_out_what_is_free_and_joins_what_comes_back() {
        let mut ranges = Ranges::new(1, 10);
        assert_eq!(ranges.take(4), Some(1));
        assert_eq!(ranges.take(4), Some(5));
        assert_eq!(ranges.take(2), None);
        ranges.give_back(1, 4);
        ranges.give_back(5, 4);
        assert_eq!(ranges.take(2), None, "it rests");
        ranges.wake(Instant::now() + REST);
        assert_eq!(ranges.free, BTreeMap::from([(1, 9)]));
        assert_eq!(ranges.take(9), Some(1));
        assert_eq!(ranges.free, BTreeMap::new());
    }
}
