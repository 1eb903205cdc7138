use bpf::types::{
    STACK_MISSED, StackEvent, StackKey, WAKER_MISSED, WAKER_STILL_BLOCKED, WakerEvent,
};

use super::*;
use crate::collector::tests::collected;

fn named(losses: Losses, missed_wakers: u64, unnamed: symbolize::Losses) -> Named {
    let mut profile = Profile::new(Unit::Nanoseconds);
    profile.losses = losses;
    Named {
        profile,
        walks: Walks::default(),
        missed_wakers,
        notes: Vec::new(),
        python: Vec::new(),
        unnamed,
        sent: 0,
        drains: 0,
    }
}

#[test]
fn what_is_missing_is_told_in_one_line() {
    let none = named(Losses::default(), 0, symbolize::Losses::default());
    assert_eq!(
        none.summary(),
        "0 stacks; lost: 0 events, 0 stacks, 0 threads; 0 cut short"
    );
    let losses = Losses {
        events: 1,
        stacks: 2,
        threads: 3,
        incomplete_user: 4,
    };
    let unnamed = symbolize::Losses {
        processes: 6,
        unopened_files: 7,
        unread_files: 8,
        kernel_hidden: true,
        ..symbolize::Losses::default()
    };
    assert_eq!(
        named(losses, 5, unnamed).summary(),
        "0 stacks; lost: 1 events, 2 stacks, 3 threads; 4 cut short; \
         5 wake-ups were not seen; \
         6 processes ended before their mappings could be read; \
         7 mapped files could not be opened; 8 files had no readable symbols; \
         kernel symbols are hidden (kernel.kptr_restrict)"
    );
}

/// What is counted of a thread that was blocked, in a stack that the kernel could not
/// tell.
fn blocked(collected: &mut Collected, waker: u64) {
    let key = StackKey {
        pid: 1,
        tid: 1,
        kernel: STACK_MISSED,
        waker,
        ..StackKey::default()
    };
    let tally = Tally {
        events: 3,
        blocked: 50,
        ..Tally::default()
    };
    collected.add(key, &tally);
}

/// Its time in the two states off the CPU.
fn off_cpu(tally: &Tally) -> Vec<(Option<State>, Weight)> {
    let of = |state, value| {
        let weight = Weight {
            value,
            ..Weight::default()
        };
        (Some(state), weight)
    };
    vec![
        of(State::Blocked, tally.blocked),
        of(State::Runnable, tally.runnable),
    ]
}

/// Who ended its wait, by what is said of why it was blocked.
fn ender(named: &Named) -> Option<String> {
    let profile = &named.profile;
    let sample = profile.samples.keys().next().unwrap();
    let ended_by = profile.why(sample).unwrap().ended_by;
    ended_by.map(|name| profile.names[name].to_string())
}

#[test]
fn what_programs_lost_is_lost_to_the_profile() {
    let mut collected = collected();
    collected.lost = bpf::types::Losses {
        counts: 2,
        clocks: 3,
        switches: 4,
        thread_ends: 5,
        children: 6,
        ..collected.lost
    };
    let named = collected.name(Unit::Nanoseconds, WakersShown::No, off_cpu);
    let Losses {
        events, threads, ..
    } = named.profile.losses;
    assert_eq!((events, threads), (9, 11));
}

#[test]
fn time_has_a_state_and_a_reason_where_it_is_blocked() {
    let mut collected = collected();
    blocked(&mut collected, 0);
    let runnable = Tally {
        events: 1,
        runnable: 7,
        ..Tally::default()
    };
    collected.add(StackKey::default(), &runnable);
    let profile = collected
        .name(Unit::Nanoseconds, WakersShown::No, off_cpu)
        .profile;
    let told: Vec<_> = profile
        .samples
        .iter()
        .map(|(sample, weight)| {
            let why = profile.why(sample).map(|why| why.reason);
            (sample.state, weight.value, why)
        })
        .collect();
    assert_eq!(
        told,
        [
            (Some(State::Blocked), 50, Some(Reason::Unknown)),
            (Some(State::Runnable), 7, None),
        ]
    );
}

/// Locks are in the scheduler's section, which the kernel leaves out of its stacks.
#[test]
fn a_lock_that_a_leaf_called_to_sleep_is_the_reason() {
    let list = std::fs::read_to_string("/proc/kallsyms").unwrap();
    let address_of = |wanted| {
        let mut lines = list.lines();
        let line = lines.find(|line| line.split(' ').nth(2) == Some(wanted))?;
        u64::from_str_radix(line.split(' ').next()?, 16).ok()
    };
    let from = address_of("kmem_cache_destroy").unwrap();
    let returns: Vec<u64> = (from + 5..from + 400).collect();
    let calls = loader::kernel_calls(&returns).unwrap(); // needs root
    let locks = ["mutex_lock", "mutex_lock_nested"].map(address_of);
    let is_lock = |called: &Option<u64>| called.is_some() && locks.contains(called);
    let at = calls.iter().position(is_lock).unwrap();
    let event = StackEvent {
        hash: 20,
        ..StackEvent::default()
    };
    let mut collected = collected();
    collected.stacks.add(&event, &[returns[at]]);
    let key = StackKey {
        kernel: event.hash,
        ..StackKey::default()
    };
    let tally = Tally {
        events: 1,
        blocked: 5,
        ..Tally::default()
    };
    collected.add(key, &tally);
    let profile = collected
        .name(Unit::Nanoseconds, WakersShown::No, off_cpu)
        .profile;
    let sample = profile.samples.keys().next().unwrap();
    let why = profile.why(sample).unwrap();
    assert_eq!(why.reason, Reason::KernelLock);
}

#[test]
fn who_ended_a_wait_is_told_with_its_reason() {
    let ended = |shown, kernel| {
        let mut collected = collected();
        collected.wakers.add(WakerEvent {
            id: 30,
            pid: 1,
            tid: 2,
            kernel,
            comm: *b"writer\0\0\0\0\0\0\0\0\0\0",
            ..WakerEvent::default()
        });
        collected.wakers.settle(&collected.stacks, |_, _| false);
        blocked(&mut collected, 30);
        ender(&collected.name(Unit::Nanoseconds, shown, off_cpu))
    };
    assert_eq!(ended(WakersShown::No, 0), None);
    let ender = ended(WakersShown::WithReasons, 0).unwrap();
    assert!(ender.starts_with("writer in "), "{ender}");
    // Where it was is not known.
    assert_eq!(ended(WakersShown::WithReasons, STACK_MISSED), None);
}

#[test]
fn how_time_varied_from_part_to_part_is_told() {
    let mut collected = collected();
    blocked(&mut collected, 0);
    let mut parts = vec![(5, Tally::default()); 8];
    parts[3].1.blocked = 50;
    collected.parts = parts;
    let named = collected.name(Unit::Nanoseconds, WakersShown::No, off_cpu);
    let states = named.profile.meta.bursts.iter().map(|bursts| bursts.state);
    assert!(states.eq([Some(State::Blocked), Some(State::Runnable)]));
}

#[test]
fn wake_ups_that_were_not_seen_are_counted() {
    for (waker, missed) in [(WAKER_MISSED, 3), (WAKER_STILL_BLOCKED, 0)] {
        let mut collected = collected();
        blocked(&mut collected, waker);
        let shown = WakersShown::Yes { kernel: false };
        let named = collected.name(Unit::Nanoseconds, shown, off_cpu);
        assert_eq!(named.missed_wakers, missed);
    }
}

#[test]
fn what_stacks_are_worth_is_counted_by_their_events() {
    let stack = |quality, outcome| NamedStack {
        stack: profile::Stack::default(),
        quality,
        outcome,
        last_module: None,
    };
    let mut worth = Worth::default();
    worth.judge(&stack(Quality::Whole, None), 1);
    assert!(!worth.walks.any());
    worth.judge(&stack(Quality::Truncated, None), 20);
    worth.judge(&stack(Quality::Truncated, None), 30);
    worth.judge(&stack(Quality::Missing, None), 400);
    let lost = Losses {
        stacks: 400,
        incomplete_user: 50,
        ..Losses::default()
    };
    assert_eq!(worth.losses, lost);
}
