//! The thread clock where events come late, or not at all, and what counts of a wait.
//! Needs root.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::mem::MaybeUninit;
use std::thread::sleep;
use std::time::Duration;

use bpf::types::{STACK_MISSED, StackKey, Tally, ThreadState};
use checks::offwaketime::{OffwaketimeSkel, OffwaketimeSkelBuilder};
use checks::{go_first, load, run, time_run};
use cli::monotonic_ns;
use libbpf_rs::{MapCore, MapFlags};

fn set_clock(parts: &mut OffwaketimeSkel<'_>, state: ThreadState, since: u64, now: u64) {
    let shared = parts.maps.bss_data.as_deref_mut().unwrap();
    shared.clock.thread.clock = since << 2 | state as u64;
    shared.clock.thread.off_since = since;
    shared.clock.thread.running = 0;
    shared.clock_now = now;
}

/// What was counted: by which kernel stack, and how much.
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

/// As where a CPU read the time, and another one's event then came first.
#[test]
fn an_event_never_ends_an_interval_before_it_began() {
    let mut object = MaybeUninit::uninit();
    let mut parts = load(OffwaketimeSkelBuilder::default(), &mut object, |_| ());
    for (now, ended, running) in [(1300, 1300, 300), (1000, 1000, 0), (900, 1000, 0)] {
        set_clock(&mut parts, ThreadState::Running, 1000, now);
        run(&parts.progs.close_running);
        let shared = parts.maps.bss_data.as_deref().unwrap();
        assert_eq!(
            (shared.clock_now, shared.clock.thread.running),
            (ended, running)
        );
    }
}

/// The scheduler knows for how long it ran since. The thread runs again: its kernel stack is
/// not the one with which it left.
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
        let since = shared.clock.thread.clock >> 2;
        assert_eq!(shared.clock.thread.clock & 3, ThreadState::Running as u64);
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
