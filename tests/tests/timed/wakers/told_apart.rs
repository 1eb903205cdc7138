//! Similar wakers are told apart, and nothing else is taken for a waker.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use systemscope_tests::printed::user_stacks::assert_most;
use systemscope_tests::printed::wakers::{TIMER, unseen_wake_ups};
use systemscope_tests::{Folded, Tool, Turn, Watch, Workload, cpus_online};

use super::measure_waits;

/// Label of a softirq in the waker's place.
const SOFTIRQ: &str = "[softirq]";

fn offwaketime(pids: &[u32], arguments: &str) -> Folded {
    measure_waits(Duration::from_secs(1), pids, arguments).waits_but_missed()
}

/// Stages of a pipeline have the same kernel stack, and `-K` shows no other stack.
#[test]
fn wakers_with_the_same_stack_are_two() {
    let _turn = Turn::share();
    let mut pipeline = Workload::plain("pipeline");
    pipeline.go();
    let id = |name| u32::try_from(pipeline.told(name)).unwrap();
    let folded = offwaketime(&[id("c"), id("d")], "-K").ended();
    for (sleeper, waker) in [("stage_c", "stage_b"), ("stage_d", "stage_c")] {
        let own = folded.only(|line| line.comm == sleeper);
        assert_most(sleeper, &own, 990, |line| line.waker().comm == waker);
    }
}

/// With `-m 0` a wait of zero length would count.
#[test]
fn who_is_preempted_waits_for_no_waker() {
    let _turn = Turn::share();
    let mut spinners = Workload::start("spinners", &[2 * cpus_online() + 1, 60]);
    spinners.go();
    let folded = offwaketime(&[spinners.pid()], "-m 0 --states");
    assert_eq!(folded.sleepers().under("spin").total(), 0, "{folded}");
}

/// The loopback device delivers its packets in a softirq.
#[test]
fn a_softirq_is_no_thread() {
    let _turn = Turn::share();
    let mut packets = Workload::start("packets", &[60]);
    packets.go();
    let folded = offwaketime(&[packets.pid()], "").ended().under("receive");
    assert_most("wakers of the receiver", &folded, 990, |line| {
        line.waker().comm == SOFTIRQ && line.waker().thread.is_none()
    });
}

#[test]
fn a_timer_is_one_without_kernel_stacks_too() {
    let _turn = Turn::share();
    let mut naps = Workload::start("naps", &[60, 1000]);
    naps.go();
    let folded = offwaketime(&[naps.pid()], "-U").ended();
    assert_most("wakers of naps", &folded, 990, |line| {
        line.waker().comm == TIMER
    });
}

/// Naps end after the window, while the tool is still attached. Each window has such a nap. The
/// machine hides wake-ups in few windows.
#[test]
fn a_wait_that_ends_after_the_window_is_still_blocked() {
    let _turn = Turn::share();
    let mut naps = Workload::start("naps", &[60, 1000]);
    naps.go();
    let unseen: Vec<u64> = (0..5)
        .map(|_| {
            let mut watch = Watch::apart(Tool::new("offwaketime").pid(naps.pid()));
            watch.open();
            watch.stop_held(Duration::from_millis(100));
            unseen_wake_ups(&watch.close().stderr)
        })
        .collect();
    let without = unseen.iter().filter(|count| **count == 0).count();
    assert!(without >= 3, "wake-ups not seen in each window: {unseen:?}");
}
