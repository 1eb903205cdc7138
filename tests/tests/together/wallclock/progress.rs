//! The progress bar that wallclock draws on a terminal.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use systemscope_tests::programs::wallclock::Run;
use systemscope_tests::{Turn, Workload};

/// Sequence that erases a line of a terminal: "erase in line" of ECMA-48.
const ERASED: &str = "\x1b[2K";

#[test]
fn a_bar_moves_while_wallclock_measures_and_is_taken_off() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    let run = Run::meanwhile(&simple.pid().to_string(), "-d 3", || {});
    let drawn = run.finished.succeeded().stderr;
    let shown = drawn.split("measuring ").skip(1);
    let mut times: Vec<f64> = shown
        .map(|rest| {
            rest.split_once(" of 3.0 s [")
                .expect("a position in the window")
                .0
        })
        .map(|time| time.parse().unwrap())
        .collect();
    assert!(times.is_sorted(), "{times:?}");
    times.dedup();
    // The bar moves every 200 ms, although the loop polls once a second.
    assert!(times.len() > 6, "{times:?}");
    // The end may come so soon after the last drawing that no new bar is drawn.
    let bars = [" of 3.0 s [", "naming the stacks ["].map(|text| drawn.rfind(text));
    let last = bars.into_iter().max().flatten().expect("a bar");
    assert!(drawn[last..].contains(ERASED), "{drawn:?}");
}
