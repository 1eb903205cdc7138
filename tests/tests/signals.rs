//! Ctrl-C and its kin end the trace and give full output.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::{Duration, Instant};

use rustix::process::Signal;
use systemscope_tests::output::files_below;
use systemscope_tests::refusal::FOLDING;
use systemscope_tests::workload::scratch;
use systemscope_tests::{Folded, Tool, Turn, Workload};

const ENDING: [Signal; 3] = [Signal::INT, Signal::TERM, Signal::HUP];
const TIME: Duration = Duration::from_millis(1500);

#[test]
fn oncputime_prints_what_it_has() {
    let _turn = Turn::take();
    let simple = Workload::plain("simple");
    for signal in ENDING {
        let finished = Tool::new("oncputime")
            .pid(simple.pid())
            .args("-F 999")
            .run_until(signal, TIME)
            .succeeded();
        let burnt = Folded::parse(&finished.stdout).under("known_burn").total();
        assert!(burnt > 20, "{burnt} samples after {signal:?}");
    }
}

#[test]
fn offcputime_and_offwaketime_print_what_they_have() {
    let _turn = Turn::take();
    let simple = Workload::plain("simple");
    for tool in ["offcputime", "offwaketime"] {
        for signal in ENDING {
            let finished = Tool::new(tool)
                .pid(simple.pid())
                .run_until(signal, TIME)
                .succeeded();
            let slept = Folded::parse(&finished.stdout).under("known_sleep").total();
            assert!(slept > 100_000, "{tool}: {slept} us after {signal:?}");
        }
    }
}

#[test]
fn wallclock_writes_what_it_has() {
    let _turn = Turn::take();
    let simple = Workload::plain("simple");
    for signal in ENDING {
        let folder = scratch();
        Tool::new("wallclock")
            .arg(simple.pid().to_string())
            .args("-d 600 -o")
            .arg(folder.path().join("early"))
            .run_until(signal, TIME)
            .succeeded();
        let files = files_below(folder.path());
        for kind in ["svg", "folded", "txt"] {
            let any = files
                .iter()
                .any(|path| path.extension().is_some_and(|extension| extension == kind));
            assert!(any, "no .{kind} after {signal:?}: {files:?}");
        }
        for path in files.iter().filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "folded")
        }) {
            assert!(
                Folded::parse(&std::fs::read(path).unwrap()).total() > 0,
                "{}",
                path.display()
            );
        }
    }
}

/// As a terminal does it: Ctrl-C reaches the children too, and they must leave
/// the decision to their parent.
#[test]
fn wallclock_survives_a_ctrl_c_to_its_whole_group() {
    let _turn = Turn::take();
    let simple = Workload::plain("simple");
    let folder = scratch();
    let running = Tool::new("wallclock")
        .arg(simple.pid().to_string())
        .args("-d 600 -o")
        .arg(folder.path().join("early"))
        .start();
    std::thread::sleep(TIME);
    running.signal_group(Signal::INT);
    running.finish_within(Duration::from_secs(20)).succeeded();
    let written: Vec<_> = files_below(folder.path());
    assert!(
        written
            .iter()
            .any(|path| path.extension().is_some_and(|extension| extension == "svg")),
        "{written:?}"
    );
}

#[test]
fn a_duration_ends_by_itself() {
    let _turn = Turn::take();
    let simple = Workload::plain("simple");
    for tool in FOLDING {
        for duration in ["1", "--duration 1", "--duration=0.5"] {
            let start = Instant::now();
            let finished = Tool::new(tool)
                .pid(simple.pid())
                .args(duration)
                .run()
                .succeeded();
            assert!(
                Folded::parse(&finished.stdout).total() > 0,
                "{tool} {duration}"
            );
            let took = start.elapsed();
            let asked = if duration.ends_with("0.5") { 0.5 } else { 1.0 };
            assert!(
                took.as_secs_f64() >= asked && took.as_secs_f64() < asked + 2.0,
                "{tool} {duration} took {took:?}"
            );
        }
    }
}
