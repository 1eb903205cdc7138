//! Reduces a profile to selected threads or waits.

use std::collections::{HashMap, HashSet};

use crate::{Id, Name, Profile, Reason, Sample, Text, Thread, ThreadId, Wait, Weight};

/// Last name of each thread.
#[derive(Clone, Debug, Default)]
pub struct LastNames(HashMap<ThreadId, Text>);

impl LastNames {
    /// Collects the last names of the threads that have accounts. Threads that had one ID one after
    /// another count as one thread with the name of the last.
    #[must_use]
    pub fn new(profile: &Profile) -> LastNames {
        let mut names: HashMap<ThreadId, (u64, Name)> = HashMap::new();
        for Thread { id, comm, clock } in &profile.threads {
            let last = names.entry(*id).or_insert((clock.ended_ns, *comm));
            if clock.ended_ns > last.0 {
                *last = (clock.ended_ns, *comm);
            }
        }
        let names = names.into_iter();
        let names = names.map(|(id, (_, name))| (id, profile.names[name].clone()));
        LastNames(names.collect())
    }

    fn get(&self, id: ThreadId) -> Option<&str> {
        self.0.get(&id).map(|name| &**name)
    }
}

impl Profile {
    /// Keeps the samples whose reason is known and is one of `wanted`.
    pub fn retain_reasons(&mut self, wanted: &[Reason]) {
        self.retain_waits(|wait| wait.is_some_and(|wait| wanted.contains(&wait.kind.reason)));
    }

    /// Keeps the samples of idle threads if `are_wanted`, and else all other samples.
    pub fn retain_idle(&mut self, are_wanted: bool) {
        self.retain_waits(|wait| wait.is_some_and(|wait| wait.idleness.is_idle()) == are_wanted);
    }

    /// Keeps the samples and the intervals whose wait is wanted. The wait of an interval
    /// without a sample is unknown.
    fn retain_waits(&mut self, is_wanted: impl Fn(Option<&Wait>) -> bool) {
        self.replace_samples(|profile, sample| is_wanted(profile.wait(sample)).then_some(*sample));
        if !is_wanted(None) {
            let intervals = &mut self.times.intervals;
            intervals.retain(|interval| interval.sample.is_some());
        }
    }

    /// Keeps the timed samples from `start_ns` on, in ns of CLOCK_MONOTONIC, and counts only these.
    /// Does nothing if the window starts there or later.
    pub fn keep_timed_samples_since(&mut self, start_ns: u64) {
        let window = &mut self.meta.window;
        let skipped_ns = start_ns.saturating_sub(window.start_ns);
        if skipped_ns == 0 {
            return;
        }
        window.start_ns = start_ns;
        window.start_utc_ns += skipped_ns;
        window.length_ns = window.length_ns.saturating_sub(skipped_ns);
        self.times
            .timed_samples
            .retain(|timed| timed.time_ns >= start_ns);
        let mut counts = vec![0_u64; self.samples.len()];
        for timed in &self.times.timed_samples {
            counts[timed.sample.index()] += 1;
        }
        let rows = std::mem::take(&mut self.samples).into_rows();
        let mut places = Vec::with_capacity(rows.len());
        for ((sample, weight), count) in rows.into_iter().zip(counts) {
            let weight = Weight {
                value: count,
                events: count,
                ..weight
            };
            places.push((count > 0).then(|| self.add(sample, weight)));
        }
        for timed in &mut self.times.timed_samples {
            if let Some(place) = places[timed.sample.index()] {
                timed.sample = place;
            }
        }
    }

    /// Keeps the threads whose last name is wanted, with their samples and rows of time. If `last`
    /// lacks a thread, the names in its samples decide about the samples and the rows of time that
    /// refer to the samples. Other rows of time of that thread are dropped.
    pub fn retain_threads(&mut self, last: &LastNames, is_wanted: impl Fn(&str) -> bool) {
        self.retain_times(last, &is_wanted);
        let keeps = |profile: &Profile, id: Option<ThreadId>, comm: Name| {
            let name = id.and_then(|id| last.get(id));
            is_wanted(name.unwrap_or(&profile.names[comm]))
        };
        let mut threads = std::mem::take(&mut self.threads);
        threads.retain(|thread| keeps(self, Some(thread.id), thread.comm));
        self.threads = threads;
        self.replace_samples(|profile, sample| {
            keeps(profile, sample.thread, sample.comm).then_some(*sample)
        });
        let threads = self.threads.iter().map(|thread| thread.id.pid);
        let sample_pid = |sample: &Sample| Some(sample.thread?.pid);
        let pids: HashSet<u32> = threads
            .chain(self.samples.keys().filter_map(sample_pid))
            .chain(self.times.threads().map(|thread| thread.pid))
            .collect();
        self.processes.retain(|process| pids.contains(&process.pid));
    }

    /// Keeps the rows of time of the threads whose name is wanted.
    fn retain_times(&mut self, last: &LastNames, is_wanted: impl Fn(&str) -> bool) {
        let Profile {
            names,
            samples,
            times,
            ..
        } = self;
        // The cache saves time, because a profile has many rows and few threads.
        let mut known: HashMap<(ThreadId, Option<Name>), bool> = HashMap::new();
        let mut keeps = |thread: ThreadId, sample: Option<Id<Sample>>| {
            let sample = sample.and_then(|sample| samples.row(sample));
            let comm = sample.map(|(sample, _)| sample.comm);
            *known.entry((thread, comm)).or_insert_with(|| {
                let name = last.get(thread).or_else(|| Some(&*names[comm?]));
                name.is_some_and(&is_wanted)
            })
        };
        (times.intervals).retain(|interval| keeps(interval.thread, interval.sample));
        (times.timed_samples).retain(|timed| keeps(timed.thread, Some(timed.sample)));
        (times.thread_events).retain(|event| keeps(event.thread, None));
        times.request_spans.retain(|span| keeps(span.thread, None));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{
        Detail, Idleness, Interval, Process, RequestSpan, Shares, State, ThreadChange, ThreadEvent,
        TimedSample, Unit, WaitKind, folded,
    };

    /// Makes threads of three processes. Each thread has an interval and a timed sample of its
    /// sample, and a running interval without a sample. The parent of its request span is the
    /// span of the thread before.
    fn profile() -> Profile {
        let text = "a-1/1;f_[o] 10\nb-2/2;g_[o] 20\nc-3/3;h_[o] 30\n";
        let mut profile = folded::read(text.as_bytes(), Unit::Nanoseconds, true).unwrap();
        let samples: Vec<Sample> = profile.samples.keys().copied().collect();
        let mut parent = None;
        for sample in samples {
            let thread = sample.thread.unwrap();
            let blocked = Interval {
                thread,
                start_ns: 0,
                shares: Shares::all(State::Blocked, profile.samples.get(&sample).unwrap().value),
                sample: Some(profile.samples.id(sample)),
            };
            let running = Interval {
                start_ns: blocked.end_ns(),
                shares: Shares::all(State::Running, blocked.length_ns()),
                sample: None,
                ..blocked
            };
            let timed = TimedSample {
                thread,
                cpu: 0,
                time_ns: running.start_ns,
                sample: profile.samples.id(sample),
            };
            let span = RequestSpan {
                name: sample.comm,
                thread,
                start_ns: 0,
                end_ns: 9,
                parent,
            };
            profile.times.intervals.extend([running, blocked]);
            profile.times.timed_samples.push(timed);
            profile.times.thread_events.push(ThreadEvent {
                thread,
                time_ns: 0,
                change: ThreadChange::Started,
            });
            parent = profile.times.request_spans.add(span);
            let pid = thread.pid;
            profile.processes.push(Process {
                pid,
                ..Process::default()
            });
        }
        profile
    }

    /// Lists the threads of intervals and of timed samples, each with the thread name of its
    /// sample, and the threads of spans with the names of their parents.
    fn times(profile: &Profile) -> [String; 3] {
        let name = |sample: Id<Sample>| {
            let (sample, _) = profile.samples.row(sample).unwrap();
            &*profile.names[sample.comm]
        };
        let times = &profile.times;
        let intervals = times.intervals.iter();
        let intervals =
            intervals.map(|it| format!("{}{}", it.thread.tid, it.sample.map_or("", name)));
        let timed = times.timed_samples.iter();
        let timed = timed.map(|it| format!("{}{}", it.thread.tid, name(it.sample)));
        let spans = times.request_spans.iter().map(|span| {
            let parent = span
                .parent
                .and_then(|parent| times.request_spans.get(parent));
            let parent = parent.map_or("", |parent| &profile.names[parent.name]);
            format!("{}{parent}", span.thread.tid)
        });
        [
            intervals.collect(),
            timed.collect(),
            spans.collect::<Vec<_>>(),
        ]
        .map(|rows| rows.join(" "))
    }

    #[test]
    fn rows_of_time_go_with_their_threads() {
        let mut all = profile();
        assert_eq!(times(&all), ["1 1a 2 2b 3 3c", "1a 2b 3c", "1 2a 3b"]);
        // In this profile only samples have names of threads. Rows without a sample have none.
        let mut unnamed = all.clone();
        unnamed.retain_threads(&LastNames::default(), |name| name != "b");
        assert_eq!(times(&unnamed), ["1a 3c", "1a 3c", ""]);
        assert_eq!(unnamed.check_times(), []);
        // The last name of the first thread differs from the name in its sample.
        for (tid, name) in [(1, "b"), (2, "c"), (3, "a")] {
            all.threads.push(Thread {
                id: ThreadId { pid: tid, tid },
                comm: all.names.text(name),
                clock: crate::Clock::default(),
            });
        }
        let last = LastNames::new(&all);
        all.retain_threads(&last, |name| name != "c");
        assert_eq!(times(&all), ["1 1a 3 3c", "1a 3c", "1 3"]);
        assert_eq!(all.check_times(), []);
        let pids: Vec<u32> = all.processes.iter().map(|process| process.pid).collect();
        assert_eq!(pids, [1, 3]);
        let events = all.times.thread_events.iter();
        assert!(events.map(|event| event.thread.tid).eq([1, 3]));
        // A process with nothing but rows of time left stays.
        all.threads.clear();
        all.retain_threads(&last, |name| name == "a");
        all.retain_reasons(&[]);
        assert_eq!(times(&all), ["", "", "3"]);
        all.retain_threads(&last, |name| name == "a");
        assert_eq!(all.processes.len(), 1);
    }

    #[test]
    fn rows_of_time_go_with_their_samples() {
        let mut all = profile();
        let known = [
            (Reason::Lock, Idleness::Waiting),
            (Reason::Sleep, Idleness::Idle),
        ];
        let mut known = known.into_iter();
        all.replace_samples(|profile, sample| {
            let wait = known.next().map(|(reason, idleness)| Wait {
                idleness,
                ..Wait::new(WaitKind::new(reason, Detail::Unknown))
            });
            Some(Sample {
                wait: wait.map(|wait| profile.waits.id(wait)),
                ..*sample
            })
        });
        let left = |retain: fn(&mut Profile)| {
            let mut profile = all.clone();
            retain(&mut profile);
            assert_eq!(profile.check_times(), []);
            let [intervals, timed, spans] = times(&profile);
            assert_eq!(spans, "1 2a 3b");
            (intervals, timed)
        };
        let expected = |intervals: &str, timed: &str| (intervals.to_owned(), timed.to_owned());
        let timers = left(|profile| profile.retain_reasons(&[Reason::Sleep]));
        assert_eq!(timers, expected("2b", "2b"));
        let idle = left(|profile| profile.retain_idle(true));
        assert_eq!(idle, expected("2b", "2b"));
        // Running intervals have no reason, so they are not idle.
        let busy = left(|profile| profile.retain_idle(false));
        assert_eq!(busy, expected("1 1a 2 3 3c", "1a 3c"));
    }
}
