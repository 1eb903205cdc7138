//! Checks that rows of time agree with each other and with the sums.

use std::collections::BTreeMap;

use crate::{Id, Profile, Sample, Shares, State, ThreadId, Unit};

/// A contradiction between rows of time, or between them and a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disagreement {
    /// Two intervals of one thread overlap.
    Overlap {
        /// The thread.
        thread: ThreadId,
        /// Start of the overlap, in ns of CLOCK_MONOTONIC.
        start_ns: u64,
        /// Length of the overlap in ns.
        length_ns: u64,
    },
    /// A row refers to a sample of another thread, or of another state.
    Stranger {
        /// The thread of the row.
        thread: ThreadId,
        /// Start of the row, in ns of CLOCK_MONOTONIC.
        start_ns: u64,
    },
    /// The sum of a sample's rows differs from its value.
    Sum {
        /// The sample.
        sample: Id<Sample>,
        /// Value of the sample.
        value: u64,
        /// Sum of the rows: ns of intervals, or the number of timed samples, depending on the
        /// profile's unit. 0 if no row refers to the sample.
        rows: u64,
    },
    /// The intervals of a thread differ from its clock in a state.
    Clock {
        /// The thread.
        thread: ThreadId,
        /// The state.
        state: State,
        /// Time in the state by the clock, in ns.
        clock_ns: u64,
        /// Time in the state by the intervals, in ns.
        rows_ns: u64,
    },
}

impl Profile {
    /// Checks rows of time against each other and against the samples. Returns every
    /// disagreement: overlaps by thread and time, strangers, sums by sample, then sums by
    /// thread. A profile without rows of time has none.
    ///
    /// Sums are exact if one tool measured the profile and lost nothing. Merging scales and
    /// rounds values ([`merge`](crate::merge)). Sampled intervals stand for other intervals, so the
    /// sums of their samples are not compared. Intervals shorter than the timeline's minimum have no
    /// row of their own, so rows may sum up to less than a sample.
    #[must_use]
    pub fn check_times(&self) -> Vec<Disagreement> {
        let mut found = self.overlaps();
        found.extend(self.strangers());
        found.extend(self.wrong_sums());
        found.extend(self.wrong_clocks());
        found
    }

    fn overlaps(&self) -> Vec<Disagreement> {
        let mut intervals: Vec<_> = self.times.intervals.iter().collect();
        intervals.sort_by_key(|interval| (interval.thread, interval.start_ns));
        let mut found = Vec::new();
        for of_thread in intervals.chunk_by(|one, other| one.thread == other.thread) {
            // Latest end of the intervals so far.
            let mut end_ns = 0;
            for interval in of_thread {
                let shared_ns = end_ns
                    .min(interval.end_ns())
                    .saturating_sub(interval.start_ns);
                if shared_ns > 0 {
                    found.push(Disagreement::Overlap {
                        thread: interval.thread,
                        start_ns: interval.start_ns,
                        length_ns: shared_ns,
                    });
                }
                end_ns = end_ns.max(interval.end_ns());
            }
        }
        found
    }

    fn strangers(&self) -> impl Iterator<Item = Disagreement> {
        let times = &self.times;
        let intervals = times.intervals.iter().filter_map(|interval| {
            let row = (interval.thread, interval.start_ns, Some(interval.state()));
            Some((row, interval.sample?))
        });
        let timed_samples = times.timed_samples.iter();
        let timed_samples = timed_samples.map(|it| ((it.thread, it.time_ns, None), it.sample));
        let rows = intervals.chain(timed_samples);
        rows.filter_map(|((thread, start_ns, state), sample)| {
            let sample = self.samples.row(sample).map(|(sample, _)| sample);
            let is_same = sample.is_some_and(|sample| {
                let is_of_state = |its| state.is_none_or(|state| state == its);
                sample.thread.is_none_or(|its| its == thread)
                    && sample.state.is_none_or(is_of_state)
            });
            (!is_same).then_some(Disagreement::Stranger { thread, start_ns })
        })
    }

    fn wrong_sums(&self) -> Vec<Disagreement> {
        let times = &self.times;
        let mut sums = vec![0_u64; self.samples.len()];
        let mut add = |sample: Id<Sample>, more: u64| {
            if let Some(sum) = sums.get_mut(sample.index()) {
                *sum = sum.saturating_add(more);
            }
        };
        let has_rows = match self.unit {
            Unit::Nanoseconds => {
                for interval in &times.intervals {
                    interval
                        .sample
                        .into_iter()
                        .for_each(|sample| add(sample, interval.length_ns()));
                }
                !times.intervals.is_empty()
            }
            Unit::Samples => {
                times
                    .timed_samples
                    .iter()
                    .for_each(|timed| add(timed.sample, 1));
                !times.timed_samples.is_empty()
            }
        };
        if !has_rows {
            return Vec::new();
        }
        let has_short = self
            .meta
            .timeline_least_ns
            .is_some_and(|least_ns| least_ns > 0);
        let samples = self.samples.iter().zip(sums).enumerate();
        let samples = samples.filter(|(_, ((sample, weight), rows))| {
            let is_wrong = if has_short {
                *rows > weight.value
            } else {
                *rows != weight.value
            };
            is_wrong && !sample.is_sampled
        });
        let wrong = samples.map(|(place, ((_, weight), rows))| Disagreement::Sum {
            sample: Id::new(place),
            value: weight.value,
            rows,
        });
        wrong.collect()
    }

    /// Compares the intervals of each thread with its clock, if a tool recorded a timeline
    /// without a loss.
    fn wrong_clocks(&self) -> Vec<Disagreement> {
        if self.meta.timeline_least_ns.is_none() || self.losses.times > 0 {
            return Vec::new();
        }
        let mut sums: BTreeMap<ThreadId, [Shares; 2]> = BTreeMap::new();
        for thread in &self.threads {
            let clock = &thread.clock;
            sums.entry(thread.id).or_default()[0] += Shares {
                running_ns: clock.running_ns,
                runnable_ns: clock.runnable_ns,
                blocked_ns: clock.blocked_ns,
            };
        }
        for interval in &self.times.intervals {
            sums.entry(interval.thread).or_default()[1] += interval.shares;
        }
        let sums = sums.into_iter();
        sums.flat_map(|(thread, [clock, rows])| compare(thread, clock, rows))
            .collect()
    }
}

/// Returns one entry for each state in which the sums of a thread differ.
fn compare(thread: ThreadId, clock: Shares, rows: Shares) -> impl Iterator<Item = Disagreement> {
    let states = [State::Running, State::Runnable, State::Blocked];
    let wrong = states
        .into_iter()
        .filter(move |&state| clock.of(state) != rows.of(state));
    wrong.map(move |state| Disagreement::Clock {
        thread,
        state,
        clock_ns: clock.of(state),
        rows_ns: rows.of(state),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{Clock, Interval, Shares, Thread, TimedSample, folded};

    const ID: ThreadId = ThreadId { pid: 1, tid: 2 };

    /// Reads a text, and adds intervals: the place of a sample, the start and the end of each.
    fn timeline(text: &str, intervals: &[(usize, u64, u64)]) -> Profile {
        let mut profile = folded::read(text.as_bytes(), Unit::Nanoseconds, true).unwrap();
        for &(place, start_ns, end_ns) in intervals {
            let sample = Id::new(place);
            let (row, _) = profile.samples.row(sample).unwrap();
            profile.times.intervals.push(Interval {
                thread: row.thread.unwrap(),
                start_ns,
                shares: Shares::all(row.state.unwrap(), end_ns - start_ns),
                sample: Some(sample),
            });
        }
        profile
    }

    #[test]
    fn a_timeline_that_is_as_its_sums_are_has_no_disagreement() {
        let text = "a-1/2;f_[o] 50\na-1/2;g_[r] 30\na-1/3;g_[r] 100\n";
        let mut profile = timeline(text, &[(0, 50, 80), (2, 0, 100), (0, 0, 20), (1, 20, 50)]);
        profile.times.intervals.push(Interval {
            start_ns: 80,
            shares: Shares::all(State::Running, u64::MAX),
            sample: None,
            ..profile.times.intervals[0]
        });
        assert_eq!(profile.check_times(), []);
        // The same profile has only sums.
        assert_eq!(timeline(text, &[]).check_times(), []);
    }

    #[test]
    fn what_contradicts_is_told() {
        let text = "a-1/2;f_[o] 50\na-1/2;g_[r] 30\n";
        let overlap = |start_ns, length_ns| Disagreement::Overlap {
            thread: ID,
            start_ns,
            length_ns,
        };
        // The last interval overlaps the first, though another lies between them.
        let intervals = [(0, 0, 50), (1, 10, 20), (1, 30, 50)];
        let found = timeline(text, &intervals).check_times();
        assert_eq!(found, [overlap(10, 10), overlap(30, 20)]);

        let found = timeline(text, &[(0, 0, 49)]).check_times();
        let sum = |place, value, rows| Disagreement::Sum {
            sample: Id::new(place),
            value,
            rows,
        };
        assert_eq!(found, [sum(0, 50, 49), sum(1, 30, 0)]);

        let right = [(0, 0, 50), (1, 50, 80)];
        let stranger = |start_ns| {
            let thread = ThreadId { tid: 3, ..ID };
            Disagreement::Stranger { thread, start_ns }
        };
        let mut profile = timeline(text, &right);
        profile.times.intervals[0].thread.tid = 3;
        assert_eq!(profile.check_times(), [stranger(0)]);
        profile.times.intervals[1].thread.tid = 3;
        profile.times.intervals[1].shares = Shares::all(State::Running, 30);
        assert_eq!(profile.check_times(), [stranger(0), stranger(50)]);
    }

    #[test]
    fn a_timeline_with_a_minimum_length_agrees_with_the_clocks() {
        let text = "a-1/2;f_[o] 50\na-1/2;g_[r] 30\n";
        // A short wait of 10 ns has no row of its own.
        let mut profile = timeline(text, &[(0, 0, 40), (1, 60, 90)]);
        profile.meta.timeline_least_ns = Some(20);
        profile.times.intervals.push(Interval {
            thread: ID,
            start_ns: 40,
            shares: Shares {
                running_ns: 10,
                runnable_ns: 0,
                blocked_ns: 10,
            },
            sample: None,
        });
        profile.threads.push(Thread {
            id: ID,
            comm: profile.samples.keys().next().unwrap().comm,
            clock: Clock {
                running_ns: 10,
                runnable_ns: 30,
                blocked_ns: 50,
                ..Clock::default()
            },
        });
        assert_eq!(profile.check_times(), []);
        profile.threads[0].clock.blocked_ns += 1;
        let wrong = Disagreement::Clock {
            thread: ID,
            state: State::Blocked,
            clock_ns: 51,
            rows_ns: 50,
        };
        assert_eq!(profile.check_times(), [wrong]);
        // Lost rows leave gaps.
        profile.losses.times = 1;
        assert_eq!(profile.check_times(), []);
    }

    #[test]
    fn timed_samples_are_as_many_as_counted() {
        let mut profile = folded::read(&b"a-1/2;f 2\n"[..], Unit::Samples, true).unwrap();
        let timed = TimedSample {
            thread: ID,
            cpu: 0,
            time_ns: 5,
            sample: Id::new(0),
        };
        profile.times.timed_samples = vec![timed; 2];
        assert_eq!(profile.check_times(), []);
        profile.times.timed_samples.pop();
        let sum = Disagreement::Sum {
            sample: Id::new(0),
            value: 2,
            rows: 1,
        };
        assert_eq!(profile.check_times(), [sum]);
    }
}
