//! The lane of each thread: its intervals in the order of time, and the times at which it
//! certainly ran.

use profile::{Id, Interval, Profile, Sample, Shares, State, ThreadId};

use super::tracks::Threads;
use crate::lanes::{Lanes, waker};

/// In place of a thread that is not known.
pub(super) const NOBODY: u32 = u32::MAX;

/// Intervals that a thread ended by a wake-up.
pub(super) struct Wakes<'a> {
    profile: &'a Profile,
    /// Places of intervals, by the thread that ended them and by their end.
    intervals: Vec<u32>,
    /// Places of the threads that ended the waits of samples, by sample.
    wakers: Vec<u32>,
}

impl<'a> Wakes<'a> {
    pub(super) fn new(profile: &'a Profile, threads: &Threads) -> Wakes<'a> {
        let wakers = profile.samples.keys().map(|sample| {
            let waker = waker(profile, sample).and_then(|waker| waker.thread);
            waker.and_then(|id| threads.place(id)).unwrap_or(NOBODY)
        });
        let mut wakes = Wakes {
            profile,
            intervals: Vec::new(),
            wakers: wakers.collect(),
        };
        let intervals = &profile.times.intervals;
        let places = 0..u32::try_from(intervals.len()).unwrap_or(u32::MAX);
        let ended = places.filter(|&place| wakes.waker(&intervals[place as usize]) != NOBODY);
        let mut ended: Vec<u32> = ended.collect();
        ended.sort_unstable_by_key(|&place| wakes.key(place));
        wakes.intervals = ended;
        wakes
    }

    /// Returns the place of the thread that ended an interval.
    fn waker(&self, interval: &Interval) -> u32 {
        if interval.state() != State::Blocked || interval.shares.is_mixed() {
            return NOBODY;
        }
        let waker = interval.sample.and_then(|id| self.wakers.get(id.index()));
        waker.copied().unwrap_or(NOBODY)
    }

    fn key(&self, place: u32) -> (u32, u64) {
        let interval = &self.profile.times.intervals[place as usize];
        (self.waker(interval), interval.end_ns())
    }

    /// Returns the first time, from a start on, at which a thread woke another.
    fn first(&self, thread: u32, start_ns: u64) -> Option<u64> {
        let intervals = &self.intervals;
        let first = intervals.partition_point(|&place| self.key(place) < (thread, start_ns));
        let (waker, end_ns) = self.key(*intervals.get(first)?);
        (waker == thread).then_some(end_ns)
    }
}

/// A thread's intervals and the times at which it certainly ran.
pub(super) struct Lane<'a> {
    lanes: &'a Lanes<'a>,
    wakes: &'a Wakes<'a>,
    pub(super) id: ThreadId,
    /// Place of the thread.
    pub(super) thread: u32,
    /// Times and CPUs of the thread's samples, in the order of time.
    samples: Vec<(u64, u32)>,
}

/// An interval that overlaps none of its lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    /// Time in each state; the sum is the length.
    pub(super) shares: Shares,
    pub(super) sample: Option<Id<Sample>>,
    /// Place of the thread that ended the interval by a wake-up.
    pub(super) waker: u32,
}

impl Row {
    /// Returns the state of the whole row; `None` if it has several.
    pub(super) fn state(&self) -> Option<State> {
        (!self.shares.is_mixed()).then(|| self.shares.largest())
    }
}

impl<'a> Lane<'a> {
    pub(super) fn new(
        lanes: &'a Lanes<'a>,
        wakes: &'a Wakes<'a>,
        id: ThreadId,
        thread: u32,
    ) -> Lane<'a> {
        let samples = lanes.timed_samples(id);
        Lane {
            lanes,
            wakes,
            id,
            thread,
            samples: samples.map(|timed| (timed.time_ns, timed.cpu)).collect(),
        }
    }

    /// Returns the rows in the order of time. A row that begins before the end of another begins at
    /// that end.
    pub(super) fn rows(&self) -> impl Iterator<Item = Row> + use<'a> {
        let wakes = self.wakes;
        let intervals = self.lanes.intervals(self.id);
        let rows = intervals.scan(0, move |reached_ns, interval| {
            let row = row(interval, *reached_ns, wakes.waker(interval));
            *reached_ns = row.map_or(*reached_ns, |row| row.end_ns);
            Some(row)
        });
        rows.flatten()
    }

    /// Returns the first time in a span, the end excluded, at which the thread certainly ran: a
    /// sample saw it, or it woke another thread.
    pub(super) fn ran_at(&self, start_ns: u64, end_ns: u64) -> Option<u64> {
        let next = self.next_sample(start_ns);
        let sample = self.samples.get(next).map(|(time_ns, _)| *time_ns);
        let wake = self.wakes.first(self.thread, start_ns);
        let first = sample.into_iter().chain(wake).min()?;
        (first < end_ns).then_some(first)
    }

    /// Returns the CPU of the first sample in a span, and true; or that of the nearest sample, and
    /// false.
    pub(super) fn cpu(&self, start_ns: u64, end_ns: u64) -> Option<(u32, bool)> {
        let next = self.next_sample(start_ns);
        let before = next.checked_sub(1).map(|last| self.samples[last]);
        match (before, self.samples.get(next).copied()) {
            (_, Some((time_ns, cpu))) if time_ns < end_ns => Some((cpu, true)),
            (Some((before_ns, before)), Some((after_ns, after))) => {
                let is_before = start_ns - before_ns < after_ns - end_ns;
                Some((if is_before { before } else { after }, false))
            }
            (only, None) | (None, only) => only.map(|(_, cpu)| (cpu, false)),
        }
    }

    fn next_sample(&self, start_ns: u64) -> usize {
        let samples = &self.samples;
        samples.partition_point(|(time_ns, _)| *time_ns < start_ns)
    }
}

/// Returns the row of an interval from a time on, if any of it is left.
fn row(interval: &Interval, from_ns: u64, waker: u32) -> Option<Row> {
    let start_ns = interval.start_ns.max(from_ns);
    let end_ns = interval.end_ns();
    let length_ns = end_ns.checked_sub(start_ns).filter(|length| *length > 0)?;
    let running_ns = interval.shares.running_ns.min(length_ns);
    let runnable_ns = interval.shares.runnable_ns.min(length_ns - running_ns);
    Some(Row {
        start_ns,
        end_ns,
        shares: Shares {
            running_ns,
            runnable_ns,
            blocked_ns: length_ns - running_ns - runnable_ns,
        },
        sample: interval.sample,
        waker,
    })
}
