//! Turns of the event loop of one thread, from its waits.

use std::collections::BTreeMap;

use bpf::types::{EpollWaitEntry, EpollWaitEvent};
use profile::ThreadId;
use report::{EventLoop, Turn};

/// Number of turns that are kept one by one: the longest.
const KEPT: usize = 100;
/// Bits of a length below its highest bit by which lengths are counted apart: 32 counts for each
/// power of two, so lengths are known to 1/64.
const DETAIL_BITS: u32 = 5;

/// Turns of the loop of one thread.
///
/// A thread may run a loop inside a turn of another one, as Node.js does for `execFileSync()`. The
/// loop of the thread is the epoll instance on which the thread waits with the highest stack pointer.
/// Waits on other instances are part of a turn.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// The epoll instance of the loop, and the highest stack pointer of its waits.
    found: Option<(u32, u64)>,
    /// End of the last wait, in ns of CLOCK_MONOTONIC.
    turn_start_ns: Option<u64>,
    turns: u64,
    waited_ns: u64,
    late_ns: u64,
    long: [u64; 3],
    /// Number of turns by length: see `bucket()`.
    lengths: BTreeMap<u32, u64>,
    /// The longest turns by length and start.
    longest: BTreeMap<(u64, u64), ()>,
}

impl Turns {
    /// Adds a wait that has ended, and the turn before it.
    pub(super) fn add(&mut self, event: &EpollWaitEvent, window: (u64, u64)) {
        if !self.is_of_loop(event.descriptor, event.stack_pointer) {
            return;
        }
        let has_begun_before = event.start_ns == 0;
        if !has_begun_before {
            let is_late = event.slept == 0 && event.result > 0;
            self.add_turn(event.start_ns, is_late, window);
        }
        self.add_wait(event.start_ns, event.end_ns, window);
        self.turn_start_ns = Some(event.end_ns);
    }

    /// Adds the wait in which the thread is at the end.
    pub(super) fn add_open(&mut self, entry: &EpollWaitEntry, window: (u64, u64)) {
        if entry.start_ns > 0 && self.is_of_loop(entry.descriptor, entry.stack_pointer) {
            self.add_turn(entry.start_ns, false, window);
            self.add_wait(entry.start_ns, window.1, window);
            self.turn_start_ns = None;
        }
    }

    /// Returns whether a wait is one of the loop. The first wait of a loop farther out replaces what
    /// is known of the loop inside it.
    fn is_of_loop(&mut self, descriptor: u32, stack_pointer: u64) -> bool {
        match &mut self.found {
            Some((found, highest)) if *found == descriptor => {
                *highest = stack_pointer.max(*highest);
                true
            }
            Some((_, highest)) if stack_pointer <= *highest => false,
            _ => {
                *self = Turns {
                    found: Some((descriptor, stack_pointer)),
                    ..Turns::default()
                };
                true
            }
        }
    }

    /// Adds the turn that ends now. A turn that is not inside the window as a whole is not counted.
    fn add_turn(&mut self, end_ns: u64, is_late: bool, (start, stop): (u64, u64)) {
        let Some(start_ns) = self.turn_start_ns.filter(|&it| it <= end_ns) else {
            return;
        };
        if is_late {
            let inside = end_ns.min(stop).saturating_sub(start_ns.max(start));
            self.late_ns = self.late_ns.saturating_add(inside);
        }
        if start_ns < start || end_ns > stop {
            return;
        }
        let length_ns = end_ns - start_ns;
        self.turns += 1;
        for (count, least_ns) in self.long.iter_mut().zip(EventLoop::LENGTHS_NS) {
            *count += u64::from(length_ns >= least_ns);
        }
        *self.lengths.entry(bucket(length_ns)).or_default() += 1;
        self.longest.insert((length_ns, start_ns), ());
        if self.longest.len() > KEPT {
            self.longest.pop_first();
        }
    }

    fn add_wait(&mut self, start_ns: u64, end_ns: u64, (start, stop): (u64, u64)) {
        let inside = end_ns.min(stop).saturating_sub(start_ns.max(start));
        self.waited_ns = self.waited_ns.saturating_add(inside);
    }

    /// Returns the loop of a thread; `None` if no wait of it was seen.
    pub(super) fn summary(&self, thread: ThreadId, lost: u64) -> Option<EventLoop> {
        self.found?;
        let turn = |&(length_ns, start_ns): &(u64, u64)| Turn {
            start_ns,
            length_ns,
            stacks: Vec::new(),
        };
        Some(EventLoop {
            thread,
            turns: self.turns,
            waited_ns: self.waited_ns,
            late_ns: self.late_ns,
            median_ns: self.quantile(50),
            p99_ns: self.quantile(99),
            long: self.long,
            longest: self.longest.keys().rev().map(turn).collect(),
            lost,
        })
    }

    /// Returns the length that this share of the turns does not exceed, in ns.
    fn quantile(&self, percent: u64) -> u64 {
        let rank = (u128::from(self.turns) * u128::from(percent)).div_ceil(100);
        let mut passed = 0_u128;
        let mut lengths = self.lengths.iter();
        let found = lengths.find(|&(_, &count)| {
            passed += u128::from(count);
            passed >= rank
        });
        found.map_or(0, |(&bucket, _)| middle(bucket))
    }
}

/// Returns the number of the count for a length: the place of the highest bit, and the bits below.
fn bucket(length_ns: u64) -> u32 {
    let shift = (u64::BITS - length_ns.leading_zeros()).saturating_sub(DETAIL_BITS + 1);
    // The highest bit is part of the upper bits, so it adds one to the place.
    (shift << DETAIL_BITS) + u32::try_from(length_ns >> shift).unwrap_or(0)
}

/// Returns the middle of the lengths with this number.
fn middle(bucket: u32) -> u64 {
    let shift = (bucket >> DETAIL_BITS).saturating_sub(1);
    let upper = u64::from(bucket - (shift << DETAIL_BITS));
    (upper << shift) + ((1 << shift) >> 1)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const WINDOW: (u64, u64) = (1_000, 10_000);
    const THREAD: ThreadId = ThreadId { pid: 1, tid: 1 };

    fn wait(descriptor: u32, stack_pointer: u64, start_ns: u64, end_ns: u64) -> EpollWaitEvent {
        EpollWaitEvent {
            start_ns,
            end_ns,
            stack_pointer,
            tid: 1,
            descriptor,
            result: 1,
            slept: u32::from(start_ns < end_ns - 50),
        }
    }

    #[test]
    fn numbers_of_counts_lead_back_to_the_length() {
        for length in (0..5_000).chain((0..60).map(|bit| 12_345_678_901 >> 30 << bit)) {
            let found = middle(bucket(length));
            assert!(found.abs_diff(length) <= length / 63, "{length}: {found}");
        }
        assert!(bucket(u64::MAX) > bucket(u64::MAX / 2));
    }

    #[test]
    fn turns_lie_between_the_waits_of_the_outer_loop_and_inside_the_window() {
        let mut turns = Turns::default();
        let events = [
            // A loop inside the turn in which recording began.
            wait(9, 400, 600, 700),
            // The outer loop: a turn of 300 ns begins at the start of the window.
            wait(3, 800, 900, 1_000),
            wait(3, 800, 1_300, 1_320),
            // A turn of 2,680 ns, with a wait of a loop inside it.
            wait(9, 400, 2_000, 3_000),
            wait(3, 808, 4_000, 9_500),
        ];
        for event in &events {
            turns.add(event, WINDOW);
        }
        // The last wait goes on at the end of the window.
        let open = EpollWaitEntry {
            start_ns: 9_700,
            descriptor: 3,
            stack_pointer: 800,
            ..EpollWaitEntry::default()
        };
        turns.add_open(&open, WINDOW);
        let summary = turns.summary(THREAD, 0).unwrap();
        let longest: Vec<(u64, u64)> = (summary.longest.iter())
            .map(|turn| (turn.start_ns, turn.length_ns))
            .collect();
        assert_eq!(longest, [(1_320, 2_680), (1_000, 300), (9_500, 200)]);
        assert_eq!(summary.turns, 3);
        assert_eq!(summary.waited_ns, 20 + 5_500 + 300);
        // Events were there when the first turn ended.
        assert_eq!(summary.late_ns, 300);
        assert_eq!(Turns::default().summary(THREAD, 0), None);
    }

    #[test]
    fn waits_beyond_the_window_count_for_their_part_inside() {
        let mut turns = Turns::default();
        turns.add(&wait(3, 800, 0, 2_000), WINDOW);
        turns.add(&wait(3, 800, 9_000, 12_000), WINDOW);
        turns.add(&wait(3, 800, 13_000, 14_000), WINDOW);
        let summary = turns.summary(THREAD, 0).unwrap();
        assert_eq!((summary.turns, summary.waited_ns), (1, 2_000));
    }
}
