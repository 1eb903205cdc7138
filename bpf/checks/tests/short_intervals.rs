//! Tests the sampling of intervals below -m: which intervals count, and with which weights.
//! Needs root.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::mem::MaybeUninit;

use bpf::types::{StackKey, Tally};
use checks::offcputime::{OffcputimeSkel, OffcputimeSkelBuilder};
use checks::{load, run};
use libbpf_rs::{MapCore, MapFlags, OpenObject};

const PERIOD: u64 = 1000;

/// Maximum deviation from the expected count, in standard deviations.
const DEVIATIONS: f64 = 5.0;

fn sampling(object: &mut MaybeUninit<OpenObject>) -> OffcputimeSkel<'_> {
    load(OffcputimeSkelBuilder::default(), object, |open| {
        let config = open.maps.rodata_data.as_deref_mut().unwrap();
        config.min_interval = PERIOD;
        config.sample_short = true;
    })
}

/// Ends waits one after the other. Each has its user stack, its blocked time and its runnable
/// time in ns.
fn end_waits(parts: &mut OffcputimeSkel<'_>, waits: &[(u64, u64, u64)]) {
    for &(user, blocked, runnable) in waits {
        let shared = parts.maps.bss_data.as_deref_mut().unwrap();
        shared.clock.record.thread.user = user;
        shared.wait_blocked = blocked;
        shared.wait_runnable = runnable;
        run(&parts.progs.end_wait);
    }
}

/// Clears the periods, as for a new thread.
fn begin_thread(parts: &mut OffcputimeSkel<'_>) {
    let clock = &mut parts.maps.bss_data.as_deref_mut().unwrap().clock;
    clock.short_blocked = Default::default();
    clock.short_runnable = Default::default();
}

/// Returns the counts by user stack and period.
fn counted(parts: &OffcputimeSkel<'_>) -> BTreeMap<(u64, u64), Tally> {
    let counts = &parts.maps.counts_even;
    let mut sums: BTreeMap<(u64, u64), Tally> = BTreeMap::new();
    for bytes in counts.keys() {
        let value = counts.lookup(&bytes, MapFlags::ANY).unwrap().unwrap();
        let (mut key, mut tally) = (StackKey::default(), Tally::default());
        plain::copy_from_bytes(&mut key, &bytes).unwrap();
        plain::copy_from_bytes(&mut tally, &value).unwrap();
        let sum = sums.entry((key.user, key.period)).or_default();
        sum.events += tally.events;
        sum.blocked += tally.blocked;
        sum.runnable += tally.runnable;
        sum.squares += tally.squares;
        sum.longest = sum.longest.max(tally.longest);
    }
    sums
}

/// Asserts that `kept` of `of` intervals agree with a probability.
#[track_caller]
fn assert_drawn(kept: u64, of: u64, probability: f64) {
    let expected = of as f64 * probability;
    let deviation = (expected * (1.0 - probability)).sqrt();
    assert!(
        (kept as f64 - expected).abs() <= DEVIATIONS * deviation,
        "{kept} of {of}, {expected} ± {deviation} expected"
    );
}

/// A round takes half a period, so samples one period apart would always find the same wait.
#[test]
fn waits_in_step_have_their_shares() {
    const ROUNDS: u64 = 8000;
    let mut object = MaybeUninit::uninit();
    let mut parts = sampling(&mut object);
    for _ in 0..ROUNDS {
        end_waits(&mut parts, &[(7, 100, 20), (8, 300, 60), (9, 100, 320)]);
    }
    let kept = counted(&parts);
    let blocked = |user| kept[&(user, PERIOD)].blocked / PERIOD;
    let runnable = |user| kept[&(user, PERIOD)].runnable / PERIOD;
    // Each period has kept one interval.
    let all = |of: &dyn Fn(u64) -> u64| of(7) + of(8) + of(9);
    assert_eq!(all(&blocked), ROUNDS / 2);
    assert!(all(&runnable).abs_diff(ROUNDS * 400 / PERIOD) <= 1);
    for (user, of_blocked, of_runnable) in [(7, 0.2, 0.05), (8, 0.6, 0.15), (9, 0.2, 0.8)] {
        assert_drawn(blocked(user), all(&blocked), of_blocked);
        assert_drawn(runnable(user), all(&runnable), of_runnable);
    }
    let tally = &kept[&(8, PERIOD)];
    assert_eq!((tally.longest, tally.squares), (360, 0));
}

/// A thread that lives less than a period counts with a probability in proportion to its time.
#[test]
fn short_lives_have_their_share() {
    const LIVES: u64 = 4000;
    let mut object = MaybeUninit::uninit();
    let mut parts = sampling(&mut object);
    for _ in 0..LIVES {
        begin_thread(&mut parts);
        end_waits(&mut parts, &[(7, 100, 0), (8, 200, 50)]);
    }
    let kept = counted(&parts);
    for (user, probability) in [(7, 0.1), (8, 0.2)] {
        assert_drawn(kept[&(user, PERIOD)].blocked / PERIOD, LIVES, probability);
    }
    assert_drawn(kept[&(8, PERIOD)].runnable / PERIOD, LIVES, 0.05);
    assert_eq!(kept[&(7, PERIOD)].runnable, 0);
}

/// A wait can end a period and also contain the point of the next period.
#[test]
fn a_wait_of_almost_a_period_may_stand_for_two() {
    const WAITS: u64 = 4000;
    let mut object = MaybeUninit::uninit();
    let mut parts = sampling(&mut object);
    for _ in 0..WAITS {
        end_waits(&mut parts, &[(7, PERIOD - 1, 0)]);
    }
    let kept = counted(&parts)[&(7, PERIOD)];
    let whole = WAITS * (PERIOD - 1) / PERIOD;
    assert!((whole..=whole + 1).contains(&(kept.blocked / PERIOD)));
    assert!(kept.events < kept.blocked / PERIOD, "{kept:?}");
}

#[test]
fn from_the_period_on_all_count_as_long_as_they_are() {
    let mut object = MaybeUninit::uninit();
    let mut parts = sampling(&mut object);
    end_waits(&mut parts, &[(7, 600, 400), (7, 5000, 0), (7, 0, 2000)]);
    let kept = counted(&parts);
    assert_eq!(kept.keys().copied().collect::<Vec<_>>(), [(7, 0)]);
    let tally = &kept[&(7, 0)];
    assert_eq!(
        (tally.events, tally.blocked, tally.runnable),
        (3, 5600, 2400)
    );
}

/// Periods do not advance in states for which the command line does not ask.
#[test]
fn what_is_not_asked_for_is_not_sampled() {
    const WAITS: u64 = 2000;
    let mut object = MaybeUninit::uninit();
    let mut parts = load(OffcputimeSkelBuilder::default(), &mut object, |open| {
        let config = open.maps.rodata_data.as_deref_mut().unwrap();
        config.min_interval = PERIOD;
        config.sample_short = true;
        config.state_filter = checks::offcputime::types::state_filter::STATES_IN_MASK;
        config.state_mask = 1;
    });
    for off_state in [2, 1].repeat(WAITS as usize / 2) {
        let shared = parts.maps.bss_data.as_deref_mut().unwrap();
        shared.clock.record.thread.off_state = off_state;
        end_waits(&mut parts, &[(off_state.into(), 100, 0)]);
    }
    let kept = counted(&parts);
    assert_eq!(kept.keys().copied().collect::<Vec<_>>(), [(1, PERIOD)]);
    assert_eq!(kept[&(1, PERIOD)].blocked / PERIOD, WAITS / 20);
}
