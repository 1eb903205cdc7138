//! Assembly of a timeline's rows: intervals, timed samples and events of threads.

use std::collections::{HashMap, HashSet};

use bpf::types::{NameEvent, TimelineKind};
use capture::KeySamples;
use profile::{
    Clock, Id, Sample, State, Thread, ThreadChange, ThreadEvent, ThreadId, TimedSample, Window,
};

use super::draft::Draft;
use crate::record::sums::Key;
use crate::record::{KernelName, RuntimeNames, Timeline};

/// A rename that an exec follows within this time is part of the exec, in ns.
const EXEC_NS: u64 = 100_000_000;

/// Samples of the keys to which a timeline refers, by their states.
#[derive(Default)]
pub(crate) struct TimedSamples(HashMap<Key, Vec<OfState>>);

/// A sample of a key, with its state.
type OfState = (Option<State>, Id<Sample>);

impl TimedSamples {
    /// Returns these keys, with no samples yet.
    pub(crate) fn new(keys: impl Iterator<Item = Key>) -> TimedSamples {
        TimedSamples(keys.map(|key| (key, Vec::new())).collect())
    }

    /// Returns the sample that counts the blocked time of a key.
    pub(crate) fn blocked(&self, key: &Key) -> Option<Id<Sample>> {
        self.of_key(Some(*key)).sample
    }

    /// Adds a sample of a key, if the timeline refers to the key.
    pub(crate) fn add(&mut self, key: &Key, state: Option<State>, sample: Id<Sample>) {
        if let Some(samples) = self.0.get_mut(key) {
            samples.push((state, sample));
        }
    }

    fn of_key(&self, key: Option<Key>) -> KeySamples {
        let samples = key.and_then(|key| self.0.get(&key));
        let of = |state| {
            let mut samples = samples?.iter();
            let found = samples.find(|(its, _)| its.is_none_or(|its| its == state));
            found.map(|(_, sample)| *sample)
        };
        KeySamples {
            sample: of(State::Blocked),
            runnable: of(State::Runnable),
        }
    }
}

/// Adds a timeline to the draft of a profile, which has its samples and threads. Rows of lanes
/// of threads without an account are left out. Returns the samples of each key, by its number.
pub(crate) fn add(
    draft: &mut Draft,
    timeline: Timeline,
    samples: &TimedSamples,
    window: Window,
    names: &RuntimeNames,
) -> Vec<KeySamples> {
    let threads: HashSet<ThreadId> = draft.profile.threads.iter().map(|it| it.id).collect();
    let numbers = 0..timeline.rows.keys.count();
    let keys: Vec<KeySamples> = numbers
        .map(|number| samples.of_key(timeline.rows.keys.get(number)))
        .collect();
    let times = &mut draft.profile.times;
    for row in &timeline.rows.parts {
        if threads.contains(&row.thread) {
            let key = row.key.and_then(|key| keys.get(key as usize));
            let key = key.copied().unwrap_or_default();
            times.intervals.extend(row.intervals(key));
        }
    }
    for row in &timeline.rows.samples {
        let sample = keys.get(row.key as usize).and_then(|key| key.sample);
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
    add_names(draft, &timeline.rows.names, &threads, names);
    draft.profile.losses.times = timeline.lost;
    keys
}

/// Replaces the numbers of the keys' samples by the ones in `numbers`, by the old numbers.
pub(crate) fn renumber(keys: &mut [KeySamples], numbers: &[Option<Id<Sample>>]) {
    let new = |old: Option<Id<Sample>>| numbers.get(old?.index()).copied().flatten();
    for key in keys {
        key.sample = new(key.sample);
        key.runnable = new(key.runnable);
    }
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
fn add_names(
    draft: &mut Draft,
    names: &[NameEvent],
    threads: &HashSet<ThreadId>,
    runtime_names: &RuntimeNames,
) {
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
        let name = KernelName {
            comm: event.comm,
            thread: Some(id(event)),
        };
        let name = draft.thread_name(runtime_names, &name);
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
