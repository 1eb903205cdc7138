//! Assembly of a timeline's rows: intervals, timed samples and events of threads.

use std::collections::{HashMap, HashSet};

use bpf::types::{NameEvent, TimelineKind};
use profile::{
    Clock, Id, Interval, Sample, Shares, State, Thread, ThreadChange, ThreadEvent, ThreadId,
    TimedSample, Window,
};

use super::draft::Draft;
use crate::record::sums::Key;
use crate::record::{Timeline, TimelinePart};

/// A rename that an exec follows within this time is part of the exec, in ns.
const EXEC_NS: u64 = 1_000_000;

/// Samples of the keys to which a timeline refers, by their states.
#[derive(Default)]
pub(crate) struct KeySamples(HashMap<Key, Vec<(Option<State>, Id<Sample>)>>);

impl KeySamples {
    /// Returns the keys of a timeline, with no samples yet.
    pub(crate) fn new(timeline: &Timeline) -> KeySamples {
        KeySamples(
            timeline
                .settled_keys()
                .map(|key| (key, Vec::new()))
                .collect(),
        )
    }

    /// Adds a sample of a key, if the timeline refers to the key.
    pub(crate) fn add(&mut self, key: &Key, state: Option<State>, sample: Id<Sample>) {
        if let Some(samples) = self.0.get_mut(key) {
            samples.push((state, sample));
        }
    }

    fn sample(&self, key: Key, state: Option<State>) -> Option<Id<Sample>> {
        let samples = self.0.get(&key)?.iter();
        let mut of_state = samples.filter(|(its, _)| its.is_none() || *its == state);
        of_state.next().map(|(_, sample)| *sample)
    }
}

/// Adds a timeline to the draft of a profile, which has its samples and threads. With
/// `has_lanes`, rows of threads without an account are left out.
pub(crate) fn add(draft: &mut Draft, timeline: Timeline, samples: &KeySamples, window: Window) {
    let threads: HashSet<ThreadId> = draft.profile.threads.iter().map(|it| it.id).collect();
    let times = &mut draft.profile.times;
    for row in &timeline.parts {
        if threads.contains(&row.thread) {
            let sample = |state| samples.sample(timeline.key(row.key?)?, Some(state));
            times.intervals.extend(intervals(row, sample));
        }
    }
    for row in &timeline.samples {
        let sample = timeline
            .key(row.key)
            .and_then(|key| samples.sample(key, None));
        times.timed_samples.extend(sample.map(|sample| TimedSample {
            thread: row.thread,
            cpu: row.cpu,
            time_ns: row.time_ns,
            sample,
        }));
    }
    let lives = draft.profile.threads.iter();
    let events: Vec<ThreadEvent> = lives.flat_map(|thread| life(thread, window)).collect();
    draft.profile.times.thread_events = events;
    add_names(draft, &timeline.names, &threads);
    draft.profile.losses.times = timeline.lost;
}

/// Returns the intervals of a part of a lane.
fn intervals(
    row: &TimelinePart,
    sample: impl Fn(State) -> Option<Id<Sample>>,
) -> impl Iterator<Item = Interval> {
    let part = row.part;
    let stretch = Shares {
        running_ns: part.stretch.running,
        runnable_ns: part.stretch.runnable,
        blocked_ns: part.stretch.blocked,
    };
    let blocked_ns = part.start.saturating_add(stretch.total_ns());
    let runnable_ns = blocked_ns.saturating_add(part.blocked);
    let stays = [
        (State::Blocked, part.blocked),
        (State::Runnable, part.runnable),
    ];
    let [blocked, runnable] = stays.map(|(state, length_ns)| {
        let shares = Shares::all(state, length_ns);
        (shares, (length_ns > 0).then(|| sample(state)).flatten())
    });
    let rows = [
        (part.start, (stretch, None)),
        (blocked_ns, blocked),
        (runnable_ns, runnable),
    ];
    let thread = row.thread;
    let rows = rows
        .into_iter()
        .map(move |(start_ns, (shares, sample))| Interval {
            thread,
            start_ns,
            shares,
            sample,
        });
    rows.filter(|interval| interval.length_ns() > 0)
}

/// Returns the start and the end of a thread, if they are inside the window.
fn life(thread: &Thread, window: Window) -> impl Iterator<Item = ThreadEvent> + use<> {
    let Thread { id, clock, .. } = *thread;
    let Clock {
        started_ns,
        ended_ns,
        ..
    } = clock;
    let window_end_ns = window.start_ns.saturating_add(window.length_ns);
    let started = (started_ns > window.start_ns).then_some((started_ns, ThreadChange::Started));
    let ended = (ended_ns < window_end_ns).then_some((ended_ns, ThreadChange::Ended));
    let events = started.into_iter().chain(ended);
    events.map(move |(time_ns, change)| ThreadEvent {
        thread: id,
        time_ns,
        change,
    })
}

/// Adds the renames and execs of threads. The kernel also renames a thread that executes a
/// program, just before the exec.
fn add_names(draft: &mut Draft, names: &[NameEvent], threads: &HashSet<ThreadId>) {
    for (at, event) in names.iter().enumerate() {
        let id = |event: &NameEvent| ThreadId {
            pid: event.pid,
            tid: event.tid,
        };
        let is_exec = |event: &NameEvent| event.kind == TimelineKind::TIMELINE_EXEC.0;
        let is_part_of_exec = || {
            let mut later = names[at + 1..].iter();
            let near = |other: &&NameEvent| other.time.saturating_sub(event.time) < EXEC_NS;
            let same = |other: &&NameEvent| {
                is_exec(other) && other.pid == event.pid && other.comm == event.comm
            };
            later.by_ref().take_while(near).any(|other| same(&other))
        };
        if !threads.contains(&id(event)) || (!is_exec(event) && is_part_of_exec()) {
            continue;
        }
        let name = draft.comm(&event.comm);
        let change = if is_exec(event) {
            ThreadChange::Executed(name)
        } else {
            ThreadChange::Renamed(name)
        };
        draft.profile.times.thread_events.push(ThreadEvent {
            thread: id(event),
            time_ns: event.time,
            change,
        });
    }
}
