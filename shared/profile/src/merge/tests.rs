#![allow(clippy::unwrap_used, clippy::panic)]

use proptest::prelude::*;

use super::*;
use crate::{
    Clock, Frame, FrameKind, Idleness, Lengths, Module, ModuleKind, Rate, Reason, Sampling, Weight,
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

/// [`super::merge`] of these clocks.
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
        let sample = Sample {
            comm: profile.names.text("t"),
            thread: Some(id),
            stack: Stack {
                user: profile.stacks.add([frame]),
                ..Stack::default()
            },
            state,
            wakers: None,
            labels: None,
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

/// The first thread's leaf names and states with their microseconds.
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
    assert!(!thread.excess.any());
    let longest = thread.longest_blocked(&merged.profile).unwrap();
    let leaf = leaf(&merged, longest.sample);
    assert_eq!((leaf, longest.time_ns), ("sleep", 6_000_000));
}

#[test]
fn running_without_a_sample_is_shown_as_such() {
    let merged = merge(
        vec![thread(ID, "t", 0, [42_000, 0, 0])],
        samples(&[]),
        times(&[]),
    );
    assert_eq!(widths(&merged), [(marker::NO_SAMPLE, State::Running, 42)]);
}

#[test]
fn time_without_a_stack_is_not_the_longest_stack() {
    let merged = merge(
        vec![thread(ID, "t", 0, [0, 0, 5_000_000])],
        samples(&[]),
        times(&[(ID, "read", Some(State::Blocked), 1_000_000)]),
    );
    let longest = merged.threads[0].longest_blocked(&merged.profile).unwrap();
    let leaf = leaf(&merged, longest.sample);
    assert_eq!((leaf, longest.time_ns), ("read", 1_000_000));
}

#[test]
fn time_without_a_stack_is_in_the_order_of_names() {
    let (runnable, blocked) = (State::Runnable, State::Blocked);
    let merged = merge(
        vec![thread(ID, "t", 0, [1_000, 5_000, 7_000])],
        samples(&[]),
        // Capitals come before brackets.
        times(&[
            (ID, "Wait", Some(runnable), 2_000),
            (ID, "Wait", Some(blocked), 3_000),
        ]),
    );
    assert_eq!(
        widths(&merged),
        [
            (marker::NO_SAMPLE, State::Running, 1),
            ("Wait", runnable, 2),
            (marker::RUNNABLE_BELOW, runnable, 3),
            ("Wait", blocked, 3),
            (marker::BLOCKED_BELOW, blocked, 4),
        ]
    );
}

#[test]
fn a_stack_of_no_samples_has_no_time() {
    let merged = merge(
        vec![thread(ID, "t", 0, [1_000, 0, 0])],
        samples(&[(ID, "f", None, 0)]),
        times(&[]),
    );
    assert_eq!(widths(&merged), [(marker::NO_SAMPLE, State::Running, 1)]);
}

#[test]
fn the_longest_stack_is_one_with_work_if_there_is_any() {
    let blocked = Some(State::Blocked);
    let mut off_cpu = times(&[(ID, "poll", blocked, 6_000_000)]);
    let why = Why {
        reason: Reason::Events,
        detail: off_cpu.names.text("poll"),
        object: None,
        holder: None,
        ended_by: None,
        idleness: Idleness::Idle,
    };
    let labels = off_cpu.labels_of(Some(why), false);
    off_cpu
        .samples
        .replace_keys(|sample| Some(Sample { labels, ..*sample }));
    let longest = |off_cpu: &Profile| {
        let clocks = vec![thread(ID, "t", 0, [0, 0, 7_000_000])];
        let merged = merge(clocks, samples(&[]), off_cpu.clone());
        let longest = merged.threads[0].longest_blocked(&merged.profile).unwrap();
        leaf(&merged, longest.sample).to_owned()
    };
    assert_eq!(longest(&off_cpu), "poll");
    let (poll, _) = off_cpu.values().next().unwrap();
    let lock = off_cpu.frame("lock", FrameKind::User);
    let lock = Sample {
        stack: Stack {
            user: off_cpu.stacks.add([lock]),
            ..Stack::default()
        },
        labels: None,
        ..poll
    };
    let value = 1_000_000;
    let weight = Weight {
        value,
        ..Weight::default()
    };
    off_cpu.add(lock, weight);
    assert_eq!(longest(&off_cpu), "lock");
}

#[test]
fn what_is_said_of_both_is_what_each_says() {
    let (mut on_cpu, mut off_cpu) = (samples(&[]), times(&[]));
    let sampling = Some(Sampling {
        event: "cpu-clock".to_owned(),
        rate: Rate::Frequency(49),
    });
    on_cpu.meta.sampling.clone_from(&sampling);
    off_cpu.meta.tool = "offcputime".to_owned();
    let bursts = |state, percent| Bursts { state, percent };
    on_cpu.meta.bursts = vec![bursts(None, 150)];
    let runnable = bursts(Some(State::Runnable), 200);
    off_cpu.meta.bursts = vec![runnable, bursts(None, 300)];
    let meta = merge(Vec::new(), on_cpu, off_cpu).profile.meta;
    assert_eq!((&*meta.tool, meta.sampling), ("wallclock", sampling));
    // Where states are not told apart one runs, or is blocked.
    let running = bursts(Some(State::Running), 150);
    let blocked = bursts(Some(State::Blocked), 300);
    assert_eq!(meta.bursts, [running, runnable, blocked]);
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
    assert!(thread.excess.any());
}

/// Off-CPU stacks of which those with a number of events were sampled, for 1 ms each.
fn sampled_times(stacks: &[(&str, State, u64, u64)]) -> Profile {
    let mut profile = Profile::new(Unit::Nanoseconds);
    profile.meta.lengths = Some(Lengths {
        least: 1_000_000,
        most: u64::MAX,
        short_are_sampled: true,
    });
    for &(name, state, value, events) in stacks {
        let frame = profile.frame(name, FrameKind::User);
        let sample = Sample {
            comm: profile.names.text("t"),
            thread: Some(ID),
            stack: Stack {
                user: profile.stacks.add([frame]),
                ..Stack::default()
            },
            state: Some(state),
            wakers: None,
            labels: profile.labels_of(None, events > 0),
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
    assert!(!thread.excess.any());
    let expected = Sampled {
        runnable_ns: 2 * ms,
        blocked_ns: 9 * ms,
        intervals: 9,
    };
    assert_eq!(thread.sampled, expected);

    // However it was measured, a stack is one.
    let times = thread.stack_times(&merged.profile);
    let read = |time: &&StackTime| leaf(&merged, time.sample) == "read";
    let [read] = times.iter().filter(read).collect::<Vec<_>>()[..] else {
        panic!("{times:?}")
    };
    // Four of 1.125 ms each: ± two of them.
    assert_eq!(
        (read.time_ns, read.error_ns),
        (15_500_000, Some(2_250_000.0))
    );
    let longest = thread.longest_blocked(&merged.profile);
    assert_eq!(longest, Some(*read));
}

#[test]
fn functions_of_one_name_are_one_however_they_were_measured() {
    let (ms, blocked) = (1_000_000, State::Blocked);
    let mut off_cpu = sampled_times(&[("read", blocked, 3 * ms, 0), ("read", blocked, ms, 1)]);
    let [path, name] = ["m", "read"].map(|text| off_cpu.names.text(text));
    let module = Some(off_cpu.modules.id(Module {
        path,
        build_id: None,
        kind: ModuleKind::File,
    }));
    let of_module = off_cpu.frames.id(Frame {
        module,
        ..Frame::named(name, FrameKind::User)
    });
    let user = off_cpu.stacks.add([of_module]);
    // That of the intervals that were sampled.
    off_cpu.samples.replace_keys(|sample| {
        let mut sample = *sample;
        if sample.labels.is_some() {
            sample.stack.user = user;
        }
        Some(sample)
    });
    let merged = merge(
        vec![thread(ID, "t", 0, [0, 0, 4 * ms])],
        samples(&[]),
        off_cpu,
    );
    let times = merged.threads[0].stack_times(&merged.profile);
    let times: Vec<u64> = times.iter().map(|stack| stack.time_ns).collect();
    assert_eq!(times, [4 * ms]);
}

#[test]
fn samples_stand_for_no_more_than_they_can() {
    let ms = 1_000_000;
    let blocked = State::Blocked;
    // A second was lost. Of what was sampled a period may be missing, and what was open.
    let merged = merge(
        vec![thread(ID, "t", 0, [0, 0, 1000 * ms])],
        samples(&[]),
        sampled_times(&[("lock", blocked, 4 * ms, 4)]),
    );
    let below = (marker::BLOCKED_BELOW, blocked, 994_000);
    assert_eq!(widths(&merged), [below, ("lock", blocked, 6000)]);
    assert_eq!(merged.threads[0].unseen.blocked_ns, 994 * ms);
    // Where there is no sample there is no stack.
    let merged = merge(
        vec![thread(ID, "t", 0, [0, 0, 900_000])],
        samples(&[]),
        sampled_times(&[]),
    );
    let below = (marker::BLOCKED_BELOW, blocked, 900);
    assert_eq!(widths(&merged), [below]);
    // A sample may stand for more than there was; several of them may not.
    for (count, excess_ns) in [(2, 0), (9, 6_500_000)] {
        let merged = merge(
            vec![thread(ID, "t", 0, [0, 0, 500_000])],
            samples(&[]),
            sampled_times(&[("lock", blocked, count * ms, count)]),
        );
        assert_eq!(widths(&merged), [("lock", blocked, 500)]);
        assert_eq!(merged.threads[0].excess.off_cpu_ns, excess_ns);
    }
}

#[test]
fn less_than_a_microsecond_is_rounding() {
    let excess = |samples, off_cpu_ns| Excess {
        samples,
        off_cpu_ns,
    };
    assert!(!excess(0, 999).any());
    assert!(excess(0, 1000).any());
    assert!(excess(1, 0).any());
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
fn functions_of_one_name_are_one() {
    let blocked = Some(State::Blocked);
    let mut off_cpu = times(&[(ID, "f", blocked, 1_500), (ID, "g", blocked, 3_000)]);
    // Of another module, and with a name that reads as that of the first.
    let path = off_cpu.names.text("m");
    let module = Some(off_cpu.modules.id(Module {
        path,
        build_id: None,
        kind: ModuleKind::File,
    }));
    let [first, other] = ["f", "g"].map(|name| off_cpu.names.text(name));
    for (name, time) in [(first, 1_700), (other, 4_000)] {
        let frame = off_cpu.frames.id(Frame {
            module,
            address: Some(time),
            ..Frame::named(name, FrameKind::User)
        });
        let (mut sample, _) = off_cpu.values().next().unwrap();
        sample.stack.user = off_cpu.stacks.add([frame]);
        let value = time;
        let weight = Weight {
            value,
            ..Weight::default()
        };
        off_cpu.add(sample, weight);
    }
    let merged = merge(
        vec![thread(ID, "t", 0, [0, 0, 10_200])],
        samples(&[]),
        off_cpu,
    );
    assert_eq!(
        widths(&merged),
        [("f", State::Blocked, 3), ("g", State::Blocked, 7)]
    );
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
