use bpf::types::{STACK_MISSED, StackKey, WAKER_MISSED, WAKER_STILL_BLOCKED};

use super::*;
use crate::collector::tests::collected;

fn named(losses: Losses, missed_wakers: u64, unnamed: symbolize::Losses) -> Named {
    let mut profile = Profile::new(Unit::Nanoseconds);
    profile.losses = losses;
    Named {
        profile,
        walks: Walks::default(),
        missed_wakers,
        left_out: LeftOut::default(),
        lost: Lost::default(),
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
        costly_files: 9,
        kernel_hidden: true,
        ..symbolize::Losses::default()
    };
    let mut all = named(losses, 5, unnamed);
    all.lost.deep_cgroups = 11;
    all.left_out.crowded_files = 12;
    assert_eq!(
        all.summary(),
        "0 stacks; lost: 1 events, 2 stacks, 3 threads; 4 cut short; \
         5 wake-ups were not seen; \
         6 processes ended before their mappings could be read; \
         7 mapped files could not be opened; 8 files had no readable symbols; \
         9 files take too much work to name all that is in them; \
         11 cgroups lie more than 1024 levels deep and are not measured (give them with --cgroup); \
         12 mapped files had no room for their unwind tables \
         (choose fewer processes with -p; -v names them); \
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
fn wake_ups_that_were_not_seen_are_counted() {
    for (waker, missed) in [(WAKER_MISSED, 3), (WAKER_STILL_BLOCKED, 0)] {
        let mut collected = collected();
        blocked(&mut collected, waker);
        let shown = WakersShown::Yes { kernel: false };
        let named = collected.name(Unit::Nanoseconds, shown, off_cpu);
        assert_eq!(named.missed_wakers, missed);
    }
}
