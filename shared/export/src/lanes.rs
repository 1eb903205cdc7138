//! Lanes: the rows of time of each thread, in the order of time.

use std::borrow::Cow;
use std::collections::HashMap;

use profile::{
    EndedBy, Id, Interval, Name, Profile, RequestSpan, RequestSpans, Sample, ThreadChange,
    ThreadEvent, ThreadId, TimedSample, Times, Waker,
};

use crate::text::frames::{file_name, wakers};

/// The lanes of a profile. They take four bytes a row, and 24 a request span.
pub(crate) struct Lanes<'a> {
    times: &'a Times,
    threads: Vec<ThreadId>,
    intervals: Order,
    timed_samples: Order,
    events: Order,
    /// Request spans by thread, each thread's in the order of time.
    requests: Vec<(ThreadId, u64, Id<RequestSpan>)>,
}

/// Places of rows in their table, by thread and time.
struct Order(Vec<u32>);

impl Order {
    fn new<Row>(rows: &[Row], key: impl Fn(&Row) -> (ThreadId, u64)) -> Order {
        // A table of 2^32 rows exceeds the memory limit of profiles.
        let mut places: Vec<u32> = (0..u32::try_from(rows.len()).unwrap_or(u32::MAX)).collect();
        places.sort_unstable_by_key(|&place| (key(&rows[place as usize]), place));
        Order(places)
    }

    /// Returns the places of a thread's rows.
    fn places<Row>(&self, rows: &[Row], thread: ThreadId, id: fn(&Row) -> ThreadId) -> &[u32] {
        let Order(places) = self;
        let id = |&place: &u32| id(&rows[place as usize]);
        let start = places.partition_point(|place| id(place) < thread);
        let length = places[start..].partition_point(|place| id(place) == thread);
        &places[start..start + length]
    }
}

impl<'a> Lanes<'a> {
    pub(crate) fn new(profile: &'a Profile) -> Lanes<'a> {
        let times = &profile.times;
        let mut threads: Vec<ThreadId> = times.threads().collect();
        threads.sort_unstable();
        threads.dedup();
        threads.shrink_to_fit();
        Lanes {
            times,
            threads,
            intervals: Order::new(&times.intervals, |row| (row.thread, row.start_ns)),
            timed_samples: Order::new(&times.timed_samples, |row| (row.thread, row.time_ns)),
            events: Order::new(&times.thread_events, |row| (row.thread, row.time_ns)),
            requests: order_requests(&times.request_spans),
        }
    }

    /// Returns the threads that have rows, in the order of their IDs.
    pub(crate) fn threads(&self) -> &[ThreadId] {
        &self.threads
    }

    /// Returns whether a thread has intervals.
    pub(crate) fn has_intervals(&self, thread: ThreadId) -> bool {
        self.intervals(thread).next().is_some()
    }

    /// Returns a thread's intervals in the order of time.
    pub(crate) fn intervals(&self, thread: ThreadId) -> impl Iterator<Item = &Interval> + Clone {
        let rows = &self.times.intervals;
        let places = self.intervals.places(rows, thread, |row| row.thread);
        places.iter().map(|&place| &rows[place as usize])
    }

    /// Returns a thread's timed samples in the order of time.
    pub(crate) fn timed_samples(&self, thread: ThreadId) -> impl Iterator<Item = &TimedSample> {
        let rows = &self.times.timed_samples;
        let places = self.timed_samples.places(rows, thread, |row| row.thread);
        places.iter().map(|&place| &rows[place as usize])
    }

    /// Returns a thread's events in the order of time.
    pub(crate) fn events(&self, thread: ThreadId) -> impl Iterator<Item = &ThreadEvent> {
        let rows = &self.times.thread_events;
        let places = self.events.places(rows, thread, |row| row.thread);
        places.iter().map(|&place| &rows[place as usize])
    }

    /// Returns a thread's request spans in the order of time.
    pub(crate) fn requests(&self, thread: ThreadId) -> impl Iterator<Item = &RequestSpan> {
        let rows = &self.requests;
        let start = rows.partition_point(|row| row.0 < thread);
        let rows = rows[start..].iter().take_while(move |row| row.0 == thread);
        rows.filter_map(|row| self.times.request_spans.get(row.2))
    }
}

fn order_requests(spans: &RequestSpans) -> Vec<(ThreadId, u64, Id<RequestSpan>)> {
    let ids = (0..spans.len()).filter_map(|place| spans.id(place));
    let rows = spans.iter().zip(ids);
    let mut rows: Vec<_> = rows
        .map(|(span, id)| (span.thread, span.start_ns, id))
        .collect();
    rows.sort_unstable();
    rows
}

/// Start of a file's timeline. It is the window's start, or the earliest row if that is before.
/// Times since it are exact in viewers, whose numbers have 53 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The start, in ns of CLOCK_MONOTONIC.
    pub(crate) monotonic_ns: u64,
    /// The start, in ns since 1970 in UTC; 0 if it is unknown.
    pub(crate) utc_ns: u64,
}

impl Origin {
    pub(crate) fn new(profile: &Profile) -> Origin {
        let times = &profile.times;
        let intervals = times.intervals.iter().map(|row| row.start_ns);
        let timed_samples = times.timed_samples.iter().map(|row| row.time_ns);
        let events = times.thread_events.iter().map(|row| row.time_ns);
        let requests = times.request_spans.iter().map(|row| row.start_ns);
        let rows = intervals.chain(timed_samples).chain(events).chain(requests);
        let window = &profile.meta.window;
        let known = (window.start_ns > 0).then_some(window.start_ns);
        let monotonic_ns = rows.chain(known).min().unwrap_or(0);
        let early_ns = known.map_or(0, |start_ns| start_ns - monotonic_ns);
        Origin {
            monotonic_ns,
            utc_ns: window.start_utc_ns.saturating_sub(early_ns),
        }
    }

    /// Returns the ns from the origin to an instant of CLOCK_MONOTONIC.
    pub(crate) fn since(self, monotonic_ns: u64) -> u64 {
        monotonic_ns.saturating_sub(self.monotonic_ns)
    }
}

/// Names of threads and processes.
pub(crate) struct LaneNames<'a> {
    profile: &'a Profile,
    threads: HashMap<ThreadId, Name>,
    executables: HashMap<u32, &'a str>,
}

impl<'a> LaneNames<'a> {
    pub(crate) fn new(profile: &'a Profile) -> LaneNames<'a> {
        let mut threads = HashMap::new();
        for sample in profile.samples.keys() {
            threads.extend(sample.thread.map(|thread| (thread, sample.comm)));
        }
        // The last name of a thread is in its account or in its last event.
        let mut last = HashMap::new();
        let events = profile.times.thread_events.iter();
        let events = events.filter_map(|event| match event.change {
            ThreadChange::Executed(name) | ThreadChange::Renamed(name) => {
                Some((event.thread, event.time_ns, name))
            }
            ThreadChange::Started | ThreadChange::Ended => None,
        });
        let accounts = profile.threads.iter();
        let accounts = accounts.map(|thread| (thread.id, thread.clock.ended_ns, thread.comm));
        for (thread, time_ns, name) in events.chain(accounts) {
            let known = last.entry(thread).or_insert((time_ns, name));
            if time_ns >= known.0 {
                *known = (time_ns, name);
            }
        }
        threads.extend(last.into_iter().map(|(thread, (_, name))| (thread, name)));
        let executables = profile.processes.iter();
        let executables = executables.filter(|process| !process.executable.is_empty());
        LaneNames {
            profile,
            threads,
            executables: executables
                .map(|process| (process.pid, file_name(&process.executable)))
                .collect(),
        }
    }

    /// Returns the last known name of a thread.
    pub(crate) fn thread(&self, thread: ThreadId) -> Option<&'a str> {
        let name = self.threads.get(&thread)?;
        Some(&self.profile.names[*name])
    }

    /// Returns the name of a process: its program, or else its main thread.
    pub(crate) fn process(&self, pid: u32) -> Option<&'a str> {
        let executable = self.executables.get(&pid).copied();
        executable.or_else(|| self.thread(ThreadId { pid, tid: pid }))
    }
}

/// Returns the waker that ended a sample's wait, or made its thread runnable.
pub(crate) fn waker<'a>(profile: &'a Profile, sample: &Sample) -> Option<&'a Waker> {
    let ended_by = profile.wait(sample).and_then(|wait| wait.ended_by);
    wakers(profile, sample).first().or_else(|| match ended_by {
        Some(EndedBy::Wakers(wakers)) => profile.wakers[wakers].first(),
        Some(EndedBy::Described(_)) | None => None,
    })
}

/// Describes what a timeline lacks: all of it, or lost rows. Returns `None` if it is whole.
pub(crate) fn lack(profile: &Profile) -> Option<Cow<'static, str>> {
    match profile.losses.times {
        0 if profile.times.is_empty() => {
            Some("no timeline: the profile has sums without times".into())
        }
        0 => None,
        1 => Some("1 row of the timeline was lost: its time is a gap".into()),
        lost => Some(format!("{lost} rows of the timeline were lost: their times are gaps").into()),
    }
}
