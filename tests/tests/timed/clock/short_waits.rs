//! Sampled waits that are shorter than `-m`: the functions of the waits, and their sums against the
//! clock.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use systemscope_tests::truth::short_waits::{ASLEEP, Measured, PERIOD_NS, PUSHED, measure};
use systemscope_tests::{Turn, patiently};

/// Tolerance in standard errors. Chance exceeds it once in 16,000 runs.
const ERRORS: u64 = 4;

#[test]
fn short_waits_are_in_the_functions_that_waited() {
    let _turn = Turn::share();
    patiently(|| assert_in_functions(&measure(4)));
}

#[track_caller]
fn assert_in_functions(measured: &Measured) {
    let stacks = measured.stacks();
    for function in ASLEEP.into_iter().chain(PUSHED) {
        let expected = measured.expected(function);
        let shown = stacks.under(function);
        assert!(
            expected.holds(shown.total(), ERRORS),
            "{} ns in {function}, {expected:?}",
            shown.total()
        );
        // A thread that is preempted all the time never sleeps.
        let blocked = shown.marked("_[o]").total();
        assert!(
            ASLEEP.contains(&function) || blocked <= PERIOD_NS,
            "{blocked} ns blocked in {function}"
        );
    }
}

#[test]
#[ignore = "needs thousands of short waits"]
fn short_waits_add_up_to_the_clock() {
    let _turn = Turn::share();
    patiently(|| assert_adds_up(&measure(2)));
}

#[track_caller]
fn assert_adds_up(measured: &Measured) {
    let seen = &measured.seen;
    for row in &seen.clocks {
        assert_eq!(row.accounted_ns(), seen.window_ns(), "{row:?}");
        let stacks = seen.folded.of_thread(row.tid);
        for (mark, clock) in [("_[o]", row.blocked_ns), ("_[r]", row.runnable_ns)] {
            let shown = stacks.marked(mark).total();
            // The unfinished period at the end, and the interval that was open then, are missing.
            assert!(
                shown.abs_diff(clock) <= 2 * PERIOD_NS,
                "{shown} in {mark}: {row:?}"
            );
        }
    }
}
