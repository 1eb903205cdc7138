//! Tests the thread clock with late or missing events, and the weights of waits. Needs root.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::mem::MaybeUninit;
use std::thread::sleep;
use std::time::Duration;

use bpf::types::{STACK_MISSED, StackKey, Tally, ThreadState, WAKER_STILL_BLOCKED};
use checks::offwaketime::{OffwaketimeSkel, OffwaketimeSkelBuilder};
use checks::{go_first, load, run, time_run};
use cli::monotonic_ns;
use libbpf_rs::{MapCore, MapFlags};

fn set_clock(parts: &mut OffwaketimeSkel<'_>, state: ThreadState, since: u64, now: u64) {
    let shared = parts.maps.bss_data.as_deref_mut().unwrap();
    shared.clock.record.thread.clock = since << 2 | state as u64;
    shared.clock.record.thread.off_since = since;
    shared.clock.record.thread.running = 0;
    shared.clock_now = now;
}

/// Returns the counts, each with its kernel stack.
fn counted(parts: &OffwaketimeSkel<'_>) -> Vec<(u64, Tally)> {
    let counts = &parts.maps.counts_even;
    let tallies = counts.keys().map(|bytes| {
        let value = counts.lookup(&bytes, MapFlags::ANY).unwrap().unwrap();
        let (mut key, mut tally) = (StackKey::default(), Tally::default());
        plain::copy_from_bytes(&mut key, &bytes).unwrap();
        plain::copy_from_bytes(&mut tally, &value).unwrap();
        (key.kernel, tally)
    });
    tallies.collect()
}

#[test]
fn who_was_not_there_when_the_window_opened_is_measured_from_now_on() {
    let mut object = MaybeUninit::uninit();
    let mut parts = load(OffwaketimeSkelBuilder::default(), &mut object, |_| ());
    for (seeded, lost, since) in [(false, 0, 1000), (true, 0, 1500), (false, 1, 1500)] {
        let shared = parts.maps.bss_data.as_deref_mut().unwrap();
        shared.window_start = 1000;
        shared.preexisting_are_known = seeded;
        shared.lost.clocks = lost;
        shared.clock_now = 1500;
        run(&parts.progs.first_seen);
        let shared = parts.maps.bss_data.as_deref().unwrap();
        assert_eq!(shared.clock_now, since, "{seeded} {lost}");
    }
}

/// A program may read the time before another CPU's event, and the event then begins an interval
/// at a later time.
#[test]
fn an_event_never_ends_an_interval_before_it_began() {
    let mut object = MaybeUninit::uninit();
    let mut parts = load(OffwaketimeSkelBuilder::default(), &mut object, |_| ());
    for (now, ended, running) in [(1300, 1300, 300), (1000, 1000, 0), (900, 1000, 0)] {
        set_clock(&mut parts, ThreadState::Running, 1000, now);
        run(&parts.progs.close_running);
        let shared = parts.maps.bss_data.as_deref().unwrap();
        assert_eq!(
            (shared.clock_now, shared.clock.record.thread.running),
            (ended, running)
        );
    }
}

/// The scheduler's account tells how long the thread has run since its switch-in. The kernel
/// stack counts as missed, because the thread runs again and has another stack.
#[test]
fn a_hidden_arrival_was_when_the_thread_got_its_cpu() {
    let mut object = MaybeUninit::uninit();
    let mut parts = load(OffwaketimeSkelBuilder::default(), &mut object, |_| ());
    for (turn, go) in [|| (), go_first].into_iter().enumerate() {
        go();
        let before = time_run();
        run(&parts.progs.note_time_run);
        let left = time_run();
        let asleep = monotonic_ns();
        sleep(Duration::from_millis(5));
        while time_run() < left + 2_000_000 {}
        let now = monotonic_ns();
        set_clock(&mut parts, ThreadState::Blocked, asleep, now);
        let ran_at_least = time_run() - left;
        run(&parts.progs.arrive_unseen);
        let ran_at_most = time_run() - before;
        let shared = parts.maps.bss_data.as_deref().unwrap();
        let since = shared.clock.record.thread.clock >> 2;
        assert_eq!(
            shared.clock.record.thread.clock & 3,
            ThreadState::Running as u64
        );
        assert_eq!(shared.lost.switches, turn as u64 + 1);
        let earliest = asleep.max(now - ran_at_most);
        let latest = asleep.max(now - ran_at_least);
        assert!(
            (earliest..=latest).contains(&since),
            "{since}, {earliest} to {latest}"
        );
    }
    for (kernel, _) in counted(&parts) {
        assert_eq!(kernel, STACK_MISSED);
    }
}

#[test]
fn bounds_are_on_the_blocked_time() {
    const BOUND: u64 = 10_000_000;
    let mut object = MaybeUninit::uninit();
    let mut parts = load(OffwaketimeSkelBuilder::default(), &mut object, |open| {
        open.maps.rodata_data.as_deref_mut().unwrap().min_interval = BOUND;
    });
    for (blocked, runnable) in [(BOUND - 1, BOUND), (BOUND, 0), (BOUND, BOUND)] {
        let shared = parts.maps.bss_data.as_deref_mut().unwrap();
        shared.wait_blocked = blocked;
        shared.wait_runnable = runnable;
        run(&parts.progs.end_wait);
    }
    let [(_, tally)] = counted(&parts)[..] else {
        panic!("{:?}", counted(&parts))
    };
    let expected = Tally {
        events: 2,
        blocked: 2 * BOUND,
        runnable: BOUND,
        longest: BOUND,
        shortest: BOUND,
        squares: 2 * (BOUND >> 10).pow(2),
    };
    assert_eq!(tally, expected);
}

#[test]
fn chains_that_differ_in_any_hop_are_two() {
    let mut object = MaybeUninit::uninit();
    let mut parts = load(OffwaketimeSkelBuilder::default(), &mut object, |_| ());
    let mut name = |hops: &[u64]| {
        let shared = parts.maps.bss_data.as_deref_mut().unwrap();
        shared.chain.hop_count = hops.len() as u32;
        shared.chain.hops[..hops.len()].copy_from_slice(hops);
        run(&parts.progs.name_chain);
        parts.maps.bss_data.as_deref().unwrap().chain_found
    };
    let chains: [&[u64]; 5] = [&[7, 8, 9], &[6, 8, 9], &[7, 5, 9], &[7, 8, 4], &[7, 8]];
    let mut names: Vec<u64> = chains.iter().map(|hops| name(hops)).collect();
    assert_eq!(name(chains[0]), names[0]);
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), chains.len());
}

/// An interval that is open when user space closes the records counts up to that time.
#[test]
fn what_is_open_at_the_end_counts_up_to_then() {
    const BLOCKED: u64 = 2;
    const AWAKE: u32 = 0;
    const ASLEEP: u32 = 1;
    let mut object = MaybeUninit::uninit();
    let mut parts = load(OffwaketimeSkelBuilder::default(), &mut object, |_| ());
    // Each row: the start of the blocked state, 1 if a waker came early, the kernel's task
    // state, and the expected blocked and runnable time until 200.
    for (since, woken_early, task_state, expected) in [
        (100, 0, Some(ASLEEP), (100, 0)),
        (100, 0, None, (100, 0)),
        // The programs did not see the wake-up.
        (100, 0, Some(AWAKE), (0, 100)),
        (100, 1, None, (0, 100)),
        // The note belongs to a sleep that never happened.
        (100, 1, Some(ASLEEP), (100, 0)),
        // The interval began after the end.
        (2000, 0, Some(ASLEEP), (0, 0)),
    ] {
        let shared = parts.maps.bss_data.as_deref_mut().unwrap();
        shared.clock = Default::default();
        let record = &mut shared.clock.record;
        record.thread.clock = since << 2 | BLOCKED;
        record.thread.off_since = since;
        record.thread.woken_early = woken_early;
        if let Some(task_state) = task_state {
            record.open.off_since = since;
            record.open.task_state = task_state;
            record.open.is_chosen = 1;
            record.open.kernel = 7;
        }
        shared.clock_now = 200;
        run(&parts.progs.close_open);
        let shared = parts.maps.bss_data.as_deref().unwrap();
        let thread = &shared.clock.record.thread;
        assert_eq!((thread.blocked, thread.runnable), expected);
        let closed = &shared.closed_open;
        assert_eq!(shared.open_counts, expected.0 > 0);
        if shared.open_counts {
            assert_eq!(closed.weight.blocked, expected.0);
            assert_eq!(closed.key.waker, WAKER_STILL_BLOCKED);
            let kernel = task_state.map_or(STACK_MISSED, |_| 7);
            assert_eq!(closed.key.kernel, kernel);
        }
    }
}

/// The filters follow bcc: both bounds are inclusive, and any bit of the mask selects a state.
#[test]
fn both_bounds_and_any_bit_of_the_state_count() {
    const FREEZABLE: u32 = 0x2001;
    const IN_MASK: u32 = 2;
    let mut object = MaybeUninit::uninit();
    let mut parts = load(OffwaketimeSkelBuilder::default(), &mut object, |open| {
        let constants = open.maps.rodata_data.as_deref_mut().unwrap();
        constants.min_interval = 10;
        constants.max_interval = 20;
        constants.state_filter.0 = IN_MASK;
        constants.state_mask = 1;
    });
    for (blocked, off_state, counts) in [
        (10, FREEZABLE, true),
        (20, 1, true),
        (9, 1, false),
        (21, 1, false),
        (10, 2, false),
        (10, 0, false),
    ] {
        let before: u64 = counted(&parts).iter().map(|(_, tally)| tally.events).sum();
        let shared = parts.maps.bss_data.as_deref_mut().unwrap();
        shared.clock.record.thread.off_state = off_state;
        shared.wait_blocked = blocked;
        run(&parts.progs.end_wait);
        let after: u64 = counted(&parts).iter().map(|(_, tally)| tally.events).sum();
        assert_eq!(after - before, u64::from(counts), "{blocked} {off_state}");
    }
}
