//! Tests the counts by stack: the map that programs use, and the keys that they add when a map
//! is full. Needs root.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::mem::MaybeUninit;

use bpf::types::{EventKind, STACK_MISSED, StackKey, Tally};
use checks::offwaketime::{OffwaketimeSkel, OffwaketimeSkelBuilder};
use checks::{load, run};
use libbpf_rs::{MapCore, MapFlags, ProgramInput, RingBufferBuilder};

/// `COUNTS_ENTRIES`
const ROOM: u64 = 16384;

fn count(parts: &mut OffwaketimeSkel<'_>, user: u64, weight: Tally) {
    count_for(parts, 0, user, weight);
}

fn count_for(parts: &mut OffwaketimeSkel<'_>, pid: u32, user: u64, weight: Tally) {
    let shared = parts.maps.bss_data.as_deref_mut().unwrap();
    shared.count_key.pid = pid;
    shared.count_key.user = user;
    shared.count_weight.events = weight.events;
    shared.count_weight.blocked = weight.blocked;
    shared.count_weight.runnable = weight.runnable;
    shared.count_weight.longest = weight.longest;
    shared.count_weight.shortest = weight.shortest;
    shared.count_weight.squares = weight.squares;
    run(&parts.progs.count_once);
}

fn counted(map: &impl MapCore, user: u64) -> Option<Tally> {
    counted_for(map, 0, user)
}

fn counted_for(map: &impl MapCore, pid: u32, user: u64) -> Option<Tally> {
    let key = StackKey {
        pid,
        user,
        ..StackKey::default()
    };
    // SAFETY: repr(C), of integers without padding.
    let found = map.lookup(unsafe { plain::as_bytes(&key) }, MapFlags::ANY);
    let mut tally = Tally::default();
    plain::copy_from_bytes(&mut tally, &found.unwrap()?).unwrap();
    Some(tally)
}

const ONE: Tally = Tally {
    events: 1,
    blocked: 10,
    runnable: 100,
    longest: 10,
    shortest: 10,
    squares: 4,
};

#[test]
fn the_same_again_adds_up_and_the_longest_and_the_shortest_are_kept() {
    let mut object = MaybeUninit::uninit();
    let mut parts = load(OffwaketimeSkelBuilder::default(), &mut object, |_| ());
    for (longest, shortest) in [(10, 20), (30, 5), (20, 10)] {
        let weight = Tally {
            longest,
            shortest,
            ..ONE
        };
        count(&mut parts, 7, weight);
    }
    let expected = Tally {
        events: 3,
        blocked: 30,
        runnable: 300,
        longest: 30,
        shortest: 5,
        squares: 12,
    };
    assert_eq!(counted(&parts.maps.counts_even, 7), Some(expected));
}

#[test]
fn programs_count_where_user_space_does_not_drain() {
    let mut object = MaybeUninit::uninit();
    let mut parts = load(OffwaketimeSkelBuilder::default(), &mut object, |_| ());
    count(&mut parts, 1, ONE);
    parts.maps.bss_data.as_deref_mut().unwrap().counts_turn = 1;
    count(&mut parts, 2, ONE);
    let (even, odd) = (&parts.maps.counts_even, &parts.maps.counts_odd);
    assert_eq!((counted(even, 1), counted(even, 2)), (Some(ONE), None));
    assert_eq!((counted(odd, 1), counted(odd, 2)), (None, Some(ONE)));
}

#[test]
fn a_map_half_full_asks_to_be_drained_and_a_full_one_says_what_is_lost() {
    let mut object = MaybeUninit::uninit();
    let mut parts = load(OffwaketimeSkelBuilder::default(), &mut object, |_| ());
    let mut lost_before = 0;
    for user in 0..ROOM + 100 {
        // Each key has its own turn, so that the process never uses up its share.
        parts.maps.bss_data.as_deref_mut().unwrap().counts_turn = 2 * user;
        count(&mut parts, STACK_MISSED + 1 + user, ONE);
        let shared = parts.maps.bss_data.as_deref().unwrap();
        assert_eq!(shared.drain_asked != 0, user + 1 >= ROOM / 2, "{user}");
        // Kernels keep some additional elements for each CPU.
        let fits = counted(&parts.maps.counts_even, STACK_MISSED + 1 + user).is_some();
        assert!(fits || user >= ROOM, "{user}");
        assert_eq!(shared.lost.counts - lost_before, u64::from(!fits), "{user}");
        lost_before = shared.lost.counts;
    }
    assert!(lost_before > 0);
    let mut asked = 0;
    let mut ring = RingBufferBuilder::new();
    ring.add(&parts.maps.events, |message| {
        assert_eq!(message, EventKind::EVENT_COUNTS_FILLING.0.to_ne_bytes());
        asked += 1;
        0
    })
    .unwrap();
    ring.build().unwrap().consume().unwrap();
    assert_eq!(asked, 1);
}

/// One process adds three quarters of the keys, and other processes still add theirs. From then
/// on the time of the first process counts without stacks.
#[test]
fn a_process_that_floods_the_counts_leaves_room_for_others() {
    const FLOOD: u64 = ROOM + 100;
    let mut object = MaybeUninit::uninit();
    let mut parts = load(OffwaketimeSkelBuilder::default(), &mut object, |_| ());
    for user in 2..2 + FLOOD {
        count_for(&mut parts, 1, user, ONE);
    }
    let others = 2..=ROOM as u32 / 8;
    for pid in others.clone() {
        count_for(&mut parts, pid, 2, ONE);
    }
    let map = &parts.maps.counts_even;
    assert_eq!(parts.maps.bss_data.as_deref().unwrap().lost.counts, 0);
    // A few processes share a place with the flooding process.
    let are_there = |user| {
        let there = others.clone().filter_map(|pid| counted_for(map, pid, user));
        there.count()
    };
    let (with_stack, without) = (are_there(2), are_there(STACK_MISSED));
    assert_eq!(with_stack + without, others.clone().count());
    assert!(without < 8, "{without}");
    let with_stack = (2..2 + FLOOD).filter_map(|user| counted_for(map, 1, user));
    let with_stack = with_stack.count() as u64;
    assert!(with_stack.abs_diff(ROOM / 4 * 3) < 4, "{with_stack}");
    let missed = counted_for(map, 1, STACK_MISSED).unwrap();
    assert_eq!(missed.events + with_stack, FLOOD);
    assert_eq!(missed.blocked, missed.events * ONE.blocked);
}

/// A process with endless names has endless keys, with stacks or without.
#[test]
fn a_process_that_floods_the_counts_with_names_leaves_room_for_others() {
    let mut object = MaybeUninit::uninit();
    let mut parts = load(OffwaketimeSkelBuilder::default(), &mut object, |_| ());
    for user in 0..2 * ROOM {
        let shared = parts.maps.bss_data.as_deref_mut().unwrap();
        shared.count_key.comm[..8].copy_from_slice(&user.to_ne_bytes().map(|byte| byte as _));
        count_for(&mut parts, 1, 2, ONE);
    }
    let used = parts.maps.bss_data.as_deref().unwrap().counts_used_even;
    assert!(used < ROOM / 16 * 13, "{used}");
    let lost = parts.maps.bss_data.as_deref().unwrap().lost.counts;
    assert_eq!(used + lost, 2 * ROOM);
}

#[test]
fn a_cpu_that_counts_says_so() {
    let mut object = MaybeUninit::uninit();
    let parts = load(OffwaketimeSkelBuilder::default(), &mut object, |_| ());
    let counts_now = |counting: u32| {
        let cpus = libbpf_rs::num_possible_cpus().unwrap();
        let value = counting.to_ne_bytes().to_vec();
        let map = &parts.maps.counting;
        map.update_percpu(&0_u32.to_ne_bytes(), &vec![value; cpus], MapFlags::ANY)
            .unwrap();
        let ran = parts.progs.visit_cpu.test_run(ProgramInput::default());
        ran.unwrap().return_value
    };
    assert_eq!(counts_now(0), 0);
    assert_eq!(counts_now(1), 1);
}
