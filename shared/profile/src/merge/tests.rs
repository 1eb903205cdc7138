#![allow(clippy::unwrap_used, clippy::panic)]

use proptest::prelude::*;

use super::*;
use crate::{
    Clock, FrameKind, Interval, Lengths, Rate, RequestSpan, Sampling, Shares, TimedSample, Weight,
};

const ID: ThreadId = ThreadId { pid: 10, tid: 11 };

type Row = (ThreadId, &'static str, Clock);

fn thread(id: ThreadId, comm: &'static str, started_ns: u64, states: [u64; 3]) -> Row {
    let [running_ns, runnable_ns, blocked_ns] = states;
    let clock = Clock {
        started_ns,
        ended_ns: started_ns + running_ns + runnable_ns + blocked_ns,
        running_ns,
        runnable_ns,
        blocked_ns,
        voluntary: 1,
        involuntary: 3,
    };
    (id, comm, clock)
}

/// Calls [`super::merge`] with these clocks.
fn merge(clocks: Vec<Row>, on_cpu: Profile, mut off_cpu: Profile) -> Merged {
    for (id, comm, clock) in clocks {
        let comm = off_cpu.names.text(comm);
        off_cpu.threads.push(Thread { id, comm, clock });
    }
    super::merge(&on_cpu, &off_cpu)
}

fn profile(unit: Unit, stacks: &[(ThreadId, &str, Option<State>, u64)]) -> Profile {
    let mut profile = Profile::new(unit);
    for &(id, name, state, value) in stacks {
        let frame = profile.frame(name, FrameKind::User);
        let comm = profile.names.text("t");
        let stack = Stack {
            user: profile.stacks.add([frame]),
            ..Stack::default()
        };
        let sample = Sample {
            state,
            ..Sample::new(comm, Some(id), stack)
        };
        let weight = Weight {
            value,
            ..Weight::default()
        };
        profile.add(sample, weight);
    }
    profile
}

fn leaf(merged: &Merged, sample: Sample) -> &str {
    let profile = &merged.profile;
    profile.name(profile.frames_of(sample.stack.user).next_back().unwrap())
}

fn samples(stacks: &[(ThreadId, &str, Option<State>, u64)]) -> Profile {
    profile(Unit::Samples, stacks)
}

fn times(stacks: &[(ThreadId, &str, Option<State>, u64)]) -> Profile {
    profile(Unit::Nanoseconds, stacks)
}

/// Returns the leaf names and states of the first thread with their microseconds.
fn widths(merged: &Merged) -> Vec<(&str, State, u64)> {
    let stacks = merged.threads[0].stacks.iter();
    stacks
        .map(|&(sample, Weight { value, .. })| {
            assert_eq!(value % 1000, 0);
            (leaf(merged, sample), sample.state.unwrap(), value / 1000)
        })
        .collect()
}

#[test]
fn samples_are_scaled_to_the_clock_and_the_rest_has_frames_of_its_own() {
    let merged = merge(
        vec![thread(ID, "t", 5, [3_000_000, 200_000, 6_800_000])],
        samples(&[(ID, "burn", None, 2), (ID, "hash", None, 1)]),
        times(&[
            (ID, "sleep", Some(State::Blocked), 6_000_000),
            (ID, "burn", Some(State::Runnable), 150_000),
        ]),
    );
    let thread = &merged.threads[0];
    assert_eq!(
        widths(&merged),
        [
            ("burn", State::Running, 2000),
            ("hash", State::Running, 1000),
            (marker::RUNNABLE_BELOW, State::Runnable, 50),
            ("burn", State::Runnable, 150),
            (marker::BLOCKED_BELOW, State::Blocked, 800),
            ("sleep", State::Blocked, 6000),
        ]
    );
    assert_eq!(thread.samples, 3);
    assert_eq!(thread.coverage(), Some(1.0));
    assert_eq!(thread.unseen.blocked_ns, 800_000);
    assert!(!thread.excess.is_significant());
    let longest = thread.longest_blocked(&merged.profile).unwrap();
    let leaf = leaf(&merged, longest.sample);
    assert_eq!((leaf, longest.time_ns), ("sleep", 6_000_000));
}

/// A row of time as a reader sees it: its time, its thread, and its sample's leaf and state.
type Shown = (u64, u32, Option<(String, State)>);

/// Lists the rows of time. Samples without a state get `state`.
fn shown(profile: &Profile, state: State) -> Vec<Shown> {
    let sample = |id: Id<Sample>| {
        let (sample, _) = profile.samples.row(id).unwrap();
        let mut frames = profile.frames_of(sample.stack.user);
        let leaf = profile.name(frames.next_back().unwrap());
        (leaf.to_owned(), sample.state.unwrap_or(state))
    };
    let intervals = profile.times.intervals.iter();
    let intervals = intervals.map(|it| (it.start_ns, it.thread.tid, it.sample.map(sample)));
    let timed = profile.times.timed_samples.iter();
    let timed = timed.map(|it| (it.time_ns, it.thread.tid, Some(sample(it.sample))));
    intervals.chain(timed).collect()
}

/// Adds an interval and a timed sample of each sample, and a running interval without a sample.
fn add_times(profile: &mut Profile) {
    let samples: Vec<(Sample, Weight)> = profile.samples.iter().map(|(s, w)| (*s, *w)).collect();
    let mut start_ns = 0;
    for (sample, weight) in samples {
        let thread = sample.thread.unwrap();
        let id = profile.samples.id(sample);
        for sample in [Some(id), None] {
            profile.times.intervals.push(Interval {
                thread,
                start_ns,
                shares: Shares::all(State::Blocked, weight.value),
                sample,
            });
            start_ns += weight.value;
        }
        profile.times.timed_samples.push(TimedSample {
            thread,
            cpu: 1,
            time_ns: start_ns,
            sample: id,
        });
    }
}

#[test]
fn rows_of_time_are_of_the_same_stacks_after_merging() {
    let [blocked, runnable] = [State::Blocked, State::Runnable].map(Some);
    let stranger = ThreadId { pid: 10, tid: 12 };
    let mut on_cpu = samples(&[(ID, "hash", None, 1), (ID, "burn", None, 2)]);
    let mut off_cpu = times(&[
        // A sample without a state counts as blocked.
        (stranger, "gone", None, 5_000),
        (ID, "sleep", blocked, 6_000_000),
        // This interval is too short for a width of its own.
        (ID, "a blink", blocked, 10),
        (ID, "burn", runnable, 1_000_000),
        // This interval is scaled.
        (ID, "sleep", runnable, 1_000_000),
    ]);
    // This sample has the same texts as another sample. Each of the two has a part of the time.
    let alike = off_cpu
        .samples
        .keys()
        .find(|sample| sample.state == blocked);
    let mut alike = *alike.unwrap();
    alike.thread = Some(ID);
    let frame = off_cpu.frames_of(alike.stack.user).next().copied().unwrap();
    let frame = crate::Frame {
        name: off_cpu.names.text("sleep"),
        address: Some(7),
        ..frame
    };
    let frame = off_cpu.frames.id(frame);
    alike.stack.user = off_cpu.stacks.add([frame]);
    let weight = Weight {
        value: 2_000_000,
        ..Weight::default()
    };
    off_cpu.add(alike, weight);
    for profile in [&mut on_cpu, &mut off_cpu] {
        add_times(profile);
        let span = RequestSpan {
            name: profile.names.text("GET /"),
            thread: ID,
            start_ns: 1,
            end_ns: 2,
            parent: None,
        };
        let parent = profile.times.request_spans.add(span);
        let child = RequestSpan { parent, ..span };
        profile.times.request_spans.add(child).unwrap();
    }
    let mut expected = shown(&on_cpu, State::Running);
    expected.extend(shown(&off_cpu, State::Blocked));
    let clock = thread(ID, "t", 0, [3_000_000, 1_500_000, 8_000_010]);
    let merged = merge(vec![clock], on_cpu, off_cpu).into_profile();
    let mut found = shown(&merged, State::Blocked);
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    // Samples with the same texts are one sample with all of the time.
    let sum = |name: &str, state| -> Vec<u64> {
        let rows = merged.samples.iter().filter(|(sample, _)| {
            let mut frames = merged.frames_of(sample.stack.user);
            let leaf = merged.name(frames.next_back().unwrap());
            leaf == name && sample.state == state
        });
        rows.map(|(_, weight)| weight.value).collect()
    };
    assert_eq!(sum("sleep", blocked), [8_000_000]);
    assert_eq!(sum("sleep", runnable), [750_000]);
    // No sum contains these samples, but rows refer to them.
    assert_eq!(
        (sum("a blink", blocked), sum("gone", blocked)),
        (vec![0], vec![0])
    );
    let spans = merged.times.request_spans.iter();
    let parents: Vec<_> = spans.map(|span| span.parent.map(Id::index)).collect();
    assert_eq!(parents, [None, Some(0), None, Some(2)]);
}

#[test]
fn a_reused_id_is_one_account_over_the_sum_of_its_lives() {
    let first = thread(ID, "old", 0, [1_000_000, 0, 0]);
    let second = thread(ID, "new", 9_000_000, [500_000, 400_000, 100_000]);
    for clocks in [vec![first, second], vec![second, first]] {
        let merged = merge(clocks, samples(&[(ID, "f", None, 1)]), times(&[]));
        let [thread] = &merged.threads[..] else {
            panic!("one thread expected");
        };
        assert_eq!((thread.lives, thread.lifetime_ns), (2, 2_000_000));
        assert_eq!(&*merged.profile.names[thread.thread.comm], "new");
        assert_eq!(thread.thread.clock.ended_ns, 10_000_000);
        let clock = &thread.thread.clock;
        assert_eq!(clock.started_ns, 0);
        assert_eq!(
            [clock.running_ns, clock.runnable_ns, clock.blocked_ns],
            [1_500_000, 400_000, 100_000]
        );
        assert_eq!((clock.voluntary, clock.involuntary), (2, 6));
        assert_eq!(thread.coverage(), Some(1.0));
    }
}

#[test]
fn stacks_that_contradict_the_clock_are_scaled_down_and_told() {
    let merged = merge(
        vec![thread(ID, "t", 0, [0, 0, 1_000_000])],
        samples(&[(ID, "ghost", None, 3)]),
        times(&[(ID, "sleep", Some(State::Blocked), 1_500_000)]),
    );
    let thread = &merged.threads[0];
    assert_eq!(widths(&merged), [("sleep", State::Blocked, 1000)]);
    assert_eq!(
        thread.excess,
        Excess {
            samples: 3,
            off_cpu_ns: 500_000
        }
    );
    assert!(thread.excess.is_significant());
}

/// Makes off-CPU stacks. Stacks with a number of events were sampled, for 1 ms each.
fn sampled_times(stacks: &[(&str, State, u64, u64)]) -> Profile {
    let mut profile = Profile::new(Unit::Nanoseconds);
    profile.meta.lengths = Some(Lengths {
        least: 1_000_000,
        most: u64::MAX,
        short_are_sampled: true,
    });
    for &(name, state, value, events) in stacks {
        let frame = profile.frame(name, FrameKind::User);
        let comm = profile.names.text("t");
        let stack = Stack {
            user: profile.stacks.add([frame]),
            ..Stack::default()
        };
        let sample = Sample {
            state: Some(state),
            is_sampled: events > 0,
            ..Sample::new(comm, Some(ID), stack)
        };
        let weight = Weight {
            value,
            events,
            ..Weight::default()
        };
        profile.add(sample, weight);
    }
    profile
}

#[test]
fn samples_of_short_waits_make_up_what_the_others_leave() {
    let ms = 1_000_000;
    let (blocked, runnable) = (State::Blocked, State::Runnable);
    let merged = merge(
        vec![thread(ID, "t", 0, [0, 2 * ms, 20 * ms])],
        samples(&[]),
        sampled_times(&[
            ("read", blocked, 11 * ms, 0),
            ("read", blocked, 4 * ms, 4),
            ("lock", blocked, 4 * ms, 4),
            ("lock", runnable, ms, 1),
        ]),
    );
    let thread = &merged.threads[0];
    // 9 ms for 8 samples; 2 ms for one.
    assert_eq!(
        widths(&merged),
        [
            ("lock", runnable, 2000),
            ("lock", blocked, 4500),
            ("read", blocked, 11_000),
            ("read", blocked, 4500),
        ]
    );
    assert_eq!(thread.coverage(), Some(1.0));
    assert_eq!(thread.unseen, Unseen::default());
    assert!(!thread.excess.is_significant());
    let expected = Sampled {
        runnable_ns: 2 * ms,
        blocked_ns: 9 * ms,
        intervals: 9,
    };
    assert_eq!(thread.sampled, expected);

    // Measured and sampled intervals of a stack are joined.
    let times = thread.stack_times(&merged.profile);
    let read = |time: &&StackTime| leaf(&merged, time.sample) == "read";
    let [read] = times.iter().filter(read).collect::<Vec<_>>()[..] else {
        panic!("{times:?}")
    };
    // The standard error of four samples of 1.125 ms each is two samples.
    assert_eq!(
        (read.time_ns, read.error_ns),
        (15_500_000, Some(2_250_000.0))
    );
    let longest = thread.longest_blocked(&merged.profile);
    assert_eq!(longest, Some(*read));
}

#[test]
fn threads_without_a_clock_are_told_and_kept_out_of_the_sums() {
    let stranger = ThreadId { pid: 10, tid: 99 };
    let merged = merge(
        vec![thread(ID, "t", 0, [1_000, 0, 0])],
        samples(&[(stranger, "f", None, 4)]),
        times(&[(stranger, "g", None, 7)]),
    );
    assert_eq!(
        merged.unclocked,
        Unclocked {
            threads: 1,
            samples: 4,
            off_cpu_ns: 7
        }
    );
    assert_eq!(merged.threads[0].accounted_ns(), 1_000);
}

#[test]
fn a_life_below_a_microsecond_has_no_coverage() {
    let merged = merge(
        vec![thread(ID, "t", 0, [999, 0, 0])],
        samples(&[]),
        times(&[]),
    );
    assert_eq!(merged.threads[0].coverage(), None);
    assert!(merged.threads[0].stacks.is_empty());
}

proptest! {
    #[test]
    fn widths_add_up_to_the_life(
        states in prop::array::uniform3(0_u64..100_000_000_000),
        counts in prop::collection::vec(1_u64..10_000, 0..40),
        kept in prop::collection::vec((0_u64..1_000_000, any::<bool>()), 0..40),
    ) {
        let names: Vec<String> = (0..40).map(|number| format!("f{number}")).collect();
        let on: Vec<_> = counts
            .iter()
            .zip(&names)
            .map(|(&count, name)| (ID, name.as_str(), None, count))
            .collect();
        let off: Vec<_> = kept
            .iter()
            .zip(&names)
            .map(|(&(time, blocked), name)| {
                let state = if blocked { State::Blocked } else { State::Runnable };
                (ID, name.as_str(), Some(state), time)
            })
            .collect();
        let life: u64 = states.iter().sum();
        let merged = merge(vec![thread(ID, "t", 7, states)], samples(&on), times(&off));
        let thread = &merged.threads[0];
        prop_assert_eq!(thread.accounted_ns(), life / 1000 * 1000);
        for (state, expected) in [State::Running, State::Runnable, State::Blocked]
            .into_iter()
            .zip(states)
        {
            let sum: u64 = thread
                .stacks
                .iter()
                .filter(|(stack, _)| stack.state == Some(state))
                .map(|(_, weight)| weight.value)
                .sum();
            prop_assert!(sum.abs_diff(expected) < 1000);
        }
    }
}

#[test]
fn a_merged_profile_has_the_accounts_that_it_was_made_of() {
    let mut on_cpu = samples(&[(ID, "burn", None, 2), (ID, "hash", None, 1)]);
    let off_cpu = times(&[
        (ID, "sleep", Some(State::Blocked), 6_000_000),
        (ID, "burn", Some(State::Runnable), 150_000),
    ]);
    on_cpu.losses.events = 2;
    let merged = merge(
        vec![thread(ID, "t", 5, [3_000_000, 200_000, 6_800_000])],
        on_cpu,
        off_cpu,
    );
    let profile = merged.clone().into_profile();
    assert!(Merged::is_merged(&profile));
    let again = Merged::from_profile(profile.clone());
    assert_eq!(widths(&again), widths(&merged));
    let [one, other] = [&merged.threads[0], &again.threads[0]];
    assert_eq!(one.thread, other.thread);
    assert_eq!(one.unseen, other.unseen);
    assert_eq!(one.unseen_blocked, other.unseen_blocked);
    assert_eq!(one.lifetime_ns, other.lifetime_ns);
    assert_eq!(again.off_cpu_lost.events, 2);
    let samples = |profile: &Profile| -> Vec<_> { profile.values().collect() };
    assert_eq!(samples(&again.into_profile()), samples(&profile));
}

#[test]
fn without_clocks_the_samples_are_the_account() {
    let mut on_cpu = samples(&[(ID, "burn", None, 2), (ID, "hash", None, 1)]);
    on_cpu.meta.sampling = Some(Sampling {
        event: "cpu-clock".into(),
        rate: Rate::Frequency(100),
    });
    assert!(!Merged::is_merged(&on_cpu));
    let threads = accounts(&on_cpu);
    assert_eq!(threads.len(), 1);
    assert_eq!(threads[0].thread.clock.running_ns, 30_000_000);
    assert_eq!(threads[0].accounted_ns(), 30_000_000);
}
