//! The lane of each thread: its intervals in the order of their times, and the times at which it
//! certainly ran.

use profile::{EndedBy, Id, Interval, Profile, Sample, Shares, State, ThreadId, Waker};

use super::tracks::Threads;

/// In place of a thread that is not known.
pub(super) const NOBODY: u32 = u32::MAX;

/// Rows of time by thread, as places in the profile's tables.
pub(super) struct Lanes<'a> {
    profile: &'a Profile,
    /// Intervals by thread and start.
    intervals: Vec<u32>,
    /// Timed samples by thread and time.
    samples: Vec<u32>,
    /// Intervals that a thread ended, by that thread and end.
    wakes: Vec<u32>,
    /// Places of the threads that ended the waits of samples, by sample.
    wakers: Vec<u32>,
}

/// A thread's intervals and the times at which it certainly ran.
#[derive(Clone, Copy)]
pub(super) struct Lane<'a> {
    lanes: &'a Lanes<'a>,
    /// Place of the thread.
    pub(super) thread: u32,
    intervals: &'a [u32],
    samples: &'a [u32],
    wakes: &'a [u32],
}

/// An interval that overlaps none of its lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    /// Time in each state; the sum is the length.
    pub(super) shares: Shares,
    pub(super) sample: Option<Id<Sample>>,
}

impl Row {
    /// Returns the state of the whole row; `None` if it has several.
    pub(super) fn state(&self) -> Option<State> {
        (!self.shares.is_mixed()).then(|| self.shares.largest())
    }
}

/// Returns the first waker of a sample's wait, if it was recorded.
pub(super) fn waker<'a>(profile: &'a Profile, sample: &Sample) -> Option<&'a Waker> {
    let ended_by = profile.wait(sample).and_then(|wait| wait.ended_by);
    let of_wait = ended_by.and_then(|ended_by| match ended_by {
        EndedBy::Wakers(wakers) => Some(wakers),
        EndedBy::Described(_) => None,
    });
    profile.wakers[sample.wakers.or(of_wait)?].first()
}

impl<'a> Lanes<'a> {
    pub(super) fn new(profile: &'a Profile, threads: &Threads) -> Lanes<'a> {
        let times = &profile.times;
        let wakers: Vec<u32> = if times.intervals.is_empty() {
            Vec::new()
        } else {
            let samples = profile.samples.keys();
            let wakers = samples.map(|sample| {
                let waker = waker(profile, sample).and_then(|waker| waker.thread);
                waker.and_then(|id| threads.place(id)).unwrap_or(NOBODY)
            });
            wakers.collect()
        };
        let mut lanes = Lanes {
            profile,
            intervals: (0..times.intervals.len() as u32).collect(),
            samples: (0..times.timed_samples.len() as u32).collect(),
            wakes: Vec::new(),
            wakers,
        };
        lanes.intervals.sort_unstable_by_key(|&place| {
            let interval = &times.intervals[place as usize];
            (interval.thread, interval.start_ns, place)
        });
        lanes.samples.sort_unstable_by_key(|&place| {
            let timed = &times.timed_samples[place as usize];
            (timed.thread, timed.time_ns, place)
        });
        let ended = (0..times.intervals.len() as u32).filter(|&place| {
            let interval = &times.intervals[place as usize];
            let is_blocked = interval.state() == State::Blocked;
            is_blocked && lanes.waker_of(interval.sample) != NOBODY
        });
        let mut wakes: Vec<u32> = ended.collect();
        wakes.sort_unstable_by_key(|&place| lanes.wake(place));
        lanes.wakes = wakes;
        lanes
    }

    /// Returns the place of the thread that ended the wait of a sample.
    fn waker_of(&self, sample: Option<Id<Sample>>) -> u32 {
        let waker = sample.and_then(|sample| self.wakers.get(sample.index()));
        waker.copied().unwrap_or(NOBODY)
    }

    /// Returns the thread that ended an interval, and when.
    fn wake(&self, interval: u32) -> (u32, u64) {
        let interval = &self.profile.times.intervals[interval as usize];
        (self.waker_of(interval.sample), interval.end_ns())
    }

    /// Returns the lane of each thread that has intervals.
    pub(super) fn iter(&'a self, threads: &'a Threads) -> impl Iterator<Item = Lane<'a>> {
        let times = &self.profile.times;
        let thread_of = |place: u32| times.intervals[place as usize].thread;
        let chunks = self
            .intervals
            .chunk_by(move |&one, &other| thread_of(one) == thread_of(other));
        chunks.filter_map(move |intervals| {
            let id = thread_of(*intervals.first()?);
            let thread = threads.place(id)?;
            Some(Lane {
                lanes: self,
                thread,
                intervals,
                samples: range(&self.samples, id, |place| {
                    times.timed_samples[place as usize].thread
                }),
                wakes: range(&self.wakes, thread, |place| self.wake(place).0),
            })
        })
    }
}

/// Returns the part of sorted rows that has a key.
fn range<Key: Ord>(rows: &[u32], key: Key, key_of: impl Fn(u32) -> Key) -> &[u32] {
    let start = rows.partition_point(|&row| key_of(row) < key);
    let length = rows[start..].partition_point(|&row| key_of(row) == key);
    &rows[start..start + length]
}

impl<'a> Lane<'a> {
    /// Returns the rows in the order of their times. A row that begins before the end of another
    /// begins at that end.
    pub(super) fn rows(self) -> impl Iterator<Item = Row> + use<'a> {
        let intervals = &self.lanes.profile.times.intervals;
        let places = self.intervals.iter();
        let rows = places.scan(0, move |reached_ns, &place| {
            let row = row(&intervals[place as usize], *reached_ns);
            *reached_ns = row.map_or(*reached_ns, |row| row.end_ns);
            Some(row)
        });
        rows.flatten()
    }

    pub(super) fn id(self) -> Option<ThreadId> {
        let first = self.intervals.first()?;
        Some(self.lanes.profile.times.intervals[*first as usize].thread)
    }

    /// Returns the place of the thread that ended a row.
    pub(super) fn waker(self, row: &Row) -> u32 {
        match row.state() {
            Some(State::Blocked) => self.lanes.waker_of(row.sample),
            _ => NOBODY,
        }
    }

    /// Returns the first time in a span, the end excluded, at which the thread certainly ran: a
    /// sample saw it, or it woke another thread.
    pub(super) fn ran_at(self, start_ns: u64, end_ns: u64) -> Option<u64> {
        let times = &self.lanes.profile.times;
        let sample = first_from(self.samples, start_ns, |place| {
            times.timed_samples[place as usize].time_ns
        });
        let wake = first_from(self.wakes, start_ns, |place| self.lanes.wake(place).1);
        let first = sample.into_iter().chain(wake).min()?;
        (first < end_ns).then_some(first)
    }

    /// Returns the CPU of the first sample in a span, and true; or that of the nearest sample, and
    /// false.
    pub(super) fn cpu(self, start_ns: u64, end_ns: u64) -> Option<(u32, bool)> {
        let samples = &self.lanes.profile.times.timed_samples;
        let at = |place: Option<&u32>| place.map(|&place| samples[place as usize]);
        let next = self
            .samples
            .partition_point(|&place| samples[place as usize].time_ns < start_ns);
        let before = at(next.checked_sub(1).and_then(|last| self.samples.get(last)));
        let after = at(self.samples.get(next));
        match (before, after) {
            (_, Some(after)) if after.time_ns < end_ns => Some((after.cpu, true)),
            (Some(before), Some(after)) => {
                let is_before = start_ns - before.time_ns < after.time_ns - end_ns;
                let cpu = if is_before { before.cpu } else { after.cpu };
                Some((cpu, false))
            }
            (only, None) | (None, only) => only.map(|only| (only.cpu, false)),
        }
    }
}

/// Returns the first time, of sorted ones, that is not before a start.
fn first_from(rows: &[u32], start_ns: u64, time: impl Fn(u32) -> u64) -> Option<u64> {
    let first = rows.partition_point(|&row| time(row) < start_ns);
    rows.get(first).map(|&row| time(row))
}

/// Returns the row of an interval from a time on, if any of it is left.
fn row(interval: &Interval, from_ns: u64) -> Option<Row> {
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
    })
}
