//! Stacks that look like one that was walked before, as far as registers go.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use systemscope_tests::output::{assert_close, per_mille};
use systemscope_tests::user_stacks::assert_most;
use systemscope_tests::{Turn, Watch, WorkloadBuilder, patiently};

/// What calls `doze` on each way.
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
    workload.go();
    workload.wait_done();
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
        assert_close(name, shown, truth, per_mille(truth, 100));
    }
}

#[test]
fn naps_that_differ_further_up_the_stack_alone_are_told_apart() {
    let _turn = Turn::take();
    patiently(assert_told_apart);
}
