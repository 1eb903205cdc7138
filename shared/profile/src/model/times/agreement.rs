//! Checks that rows of time agree with each other and with the sums.

use crate::{Id, Profile, Sample, ThreadId, Unit};

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
}

impl Profile {
    /// Checks rows of time against each other and against the samples. Returns every
    /// disagreement: overlaps by thread and time, strangers, then sums by sample. A profile
    /// without rows of time has none.
    ///
    /// Sums are exact if one tool measured the profile and lost nothing. Merging scales and rounds
    /// values ([`merge`](crate::merge)). Sampled intervals stand for other intervals, so the sums
    /// of their samples are not compared.
    #[must_use]
    pub fn check_times(&self) -> Vec<Disagreement> {
        let mut found = self.overlaps();
        found.extend(self.strangers());
        found.extend(self.wrong_sums());
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
            let row = (interval.thread, interval.start_ns, Some(interval.state));
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
                        .for_each(|sample| add(sample, interval.length_ns));
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
        let samples = self.samples.iter().zip(sums).enumerate();
        let samples = samples
            .filter(|(_, ((sample, weight), rows))| weight.value != *rows && !sample.is_sampled);
        let wrong = samples.map(|(place, ((_, weight), rows))| Disagreement::Sum {
            sample: Id::new(place),
            value: weight.value,
            rows,
        });
        wrong.collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{Interval, State, TimedSample, folded};

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
                length_ns: end_ns - start_ns,
                state: row.state.unwrap(),
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
            length_ns: u64::MAX,
            state: State::Running,
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
        profile.times.intervals[1].state = State::Running;
        assert_eq!(profile.check_times(), [stranger(0), stranger(50)]);
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
