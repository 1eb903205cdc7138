//! Stacks with the same leaf registers as a stack in the unwind cache.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use systemscope_tests::printed::samples::running_ns;
use systemscope_tests::printed::user_stacks::assert_most;
use systemscope_tests::{Turn, Watch, WorkloadBuilder, patiently};

/// Callers of `doze`, for each path to it.
const CALLERS: [(&str, &[&str]); 6] = [
    ("red", &["main", "red", "doze"]),
    ("blue", &["main", "blue", "doze"]),
    ("north", &["main", "north", "midway", "doze"]),
    ("south", &["main", "south", "midway", "doze"]),
    ("narrow", &["main", "narrow", "in_room", "doze"]),
    ("wide", &["main", "wide", "in_room", "doze"]),
];

fn assert_told_apart() {
    let mut workload = WorkloadBuilder::new("look_alikes")
        .without_frame_pointers()
        .start();
    let mut watch = Watch::offcputime(workload.pid(), "-U");
    watch.open();
    let before = running_ns(workload.pid());
    workload.go();
    workload.wait_done();
    let running_ns = running_ns(workload.pid()) - before;
    let seen = watch.close();
    for way in ["red", "north", "narrow"] {
        assert_eq!(workload.told(&format!("alike_{way}")), 1, "{way}");
    }
    let naps = seen.folded_but_missed().under("doze");
    assert_most("naps", &naps, 1000, |line| {
        CALLERS.iter().any(|(_, path)| line.has_path(path))
    });
    for (name, path) in CALLERS {
        let shown = naps.only(|line| line.has_path(path)).total();
        let truth = workload.told(name);
        // The program's measure of a nap includes system calls and switches. They take at most all
        // of the running time.
        let missing = seen.folded.total() - naps.total();
        let least = truth.saturating_sub(running_ns + missing);
        assert!(
            (least..=truth).contains(&shown),
            "{name}: {shown} is not from {least} to {truth}"
        );
    }
}

#[test]
fn naps_that_differ_further_up_the_stack_alone_are_told_apart() {
    let _turn = Turn::share();
    patiently(assert_told_apart);
}
