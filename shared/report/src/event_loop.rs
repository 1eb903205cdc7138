//! Turns of event loops: the time that a thread spends between two waits for events.

use std::collections::BTreeMap;

use profile::merge::Merged;
use profile::{Rate, Stack, ThreadId};

/// Turns of the event loop of one thread in the window. A turn begins when an `epoll_wait` of the
/// loop returns, and ends when the loop calls the next one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventLoop {
    /// The thread.
    pub thread: ThreadId,
    /// Number of turns that lie inside the window as a whole.
    pub turns: u64,
    /// Time in `epoll_wait` of the loop, in ns.
    pub waited_ns: u64,
    /// Time of turns after which `epoll_wait` returned events without sleeping, in ns.
    pub late_ns: u64,
    /// Length that half of the turns do not exceed, in ns, to 2 %.
    pub median_ns: u64,
    /// Length that 99 % of the turns do not exceed, in ns, to 2 %.
    pub p99_ns: u64,
    /// Number of turns from each length of [`EventLoop::LENGTHS_NS`] on.
    pub long: [u64; 3],
    /// The longest turns, longest first.
    pub longest: Vec<Turn>,
    /// Number of waits that were lost. If there are any, nothing else is right.
    pub lost: u64,
}

impl EventLoop {
    /// Lengths of long turns, in ns.
    pub const LENGTHS_NS: [u64; 3] = [1_000_000, 10_000_000, 100_000_000];
}

/// A turn of an event loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Start, in ns of CLOCK_MONOTONIC.
    pub start_ns: u64,
    /// Length in ns.
    pub length_ns: u64,
    /// Stacks that were seen during the turn, with their time in ns. The list is empty if the
    /// profile has no timeline, or if the turn was too short to be seen.
    pub stacks: Vec<(Stack, u64)>,
}

/// Fills in the stacks of the longest turns from the timeline of a profile. A sample stands for the
/// period of sampling, and an interval off the CPU for its time inside the turn.
pub fn find_stacks(event_loops: &mut [EventLoop], merged: &Merged) {
    let profile = &merged.profile;
    let period_ns = match profile.meta.sampling.as_ref().map(|it| it.rate) {
        Some(Rate::Frequency(frequency)) => 1_000_000_000_u64.checked_div(frequency).unwrap_or(0),
        Some(Rate::Period(period)) => period,
        None => 0,
    };
    for event_loop in event_loops {
        let thread = event_loop.thread;
        // Turns of one thread do not overlap.
        let mut turns: Vec<&mut Turn> = event_loop.longest.iter_mut().collect();
        turns.sort_by_key(|turn| turn.start_ns);
        let samples = profile.times.timed_samples.iter();
        let samples = samples
            .filter(|timed| timed.thread == thread)
            .map(|timed| (timed.time_ns, timed.time_ns, Some(timed.sample)));
        let intervals = profile.times.intervals.iter();
        let intervals = intervals
            .filter(|interval| interval.thread == thread)
            .map(|interval| (interval.start_ns, interval.end_ns(), interval.sample));
        for (start_ns, end_ns, sample) in samples.chain(intervals) {
            let Some(sample) = sample.and_then(|number| merged.timed_stack(number)) else {
                continue;
            };
            let first = turns
                .partition_point(|turn| turn.start_ns.saturating_add(turn.length_ns) <= start_ns);
            for turn in turns.iter_mut().skip(first) {
                if turn.start_ns > end_ns {
                    break;
                }
                let end_of_turn = turn.start_ns.saturating_add(turn.length_ns);
                let inside = end_ns
                    .min(end_of_turn)
                    .saturating_sub(start_ns.max(turn.start_ns));
                let time = if start_ns == end_ns {
                    period_ns
                } else {
                    inside
                };
                if time > 0 {
                    turn.stacks.push((sample.stack, time));
                }
            }
        }
        for turn in turns {
            let mut sums: BTreeMap<Stack, u64> = BTreeMap::new();
            for (stack, time) in turn.stacks.drain(..) {
                let sum = sums.entry(stack).or_default();
                *sum = sum.saturating_add(time);
            }
            turn.stacks = sums.into_iter().collect();
        }
    }
}
