use bpf::types::{STACK_MISSED, StackKey, WAKER_MISSED, WAKER_STILL_BLOCKED};

use super::*;
use crate::record::collector::tests::collected;

/// Adds an interval of a blocked thread whose stack the kernel missed.
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

/// Returns the weight of a tally in the two states off the CPU.
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
    let named = collected.name(
        Unit::Nanoseconds,
        WakersShown::No,
        Window::default(),
        off_cpu,
    );
    let Losses {
        events, threads, ..
    } = named.profile.losses;
    assert_eq!((events, threads), (9, 11));
}

#[test]
fn wake_ups_that_were_not_seen_are_counted() {
    for (waker, missed) in [(WAKER_MISSED, 3), (WAKER_STILL_BLOCKED, 0)] {
        let mut collected = collected();
        blocked(&mut collected, waker);
        let shown = WakersShown::Yes { kernel: false };
        let named = collected.name(Unit::Nanoseconds, shown, Window::default(), off_cpu);
        assert_eq!(named.diagnostics.missed_wakers, missed);
    }
}
