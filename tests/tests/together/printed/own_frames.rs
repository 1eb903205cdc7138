//! Frames of the profiler itself, which no output shows.
//!
//! In every test the reader of folded text refuses such frames. This test makes them likely.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use systemscope_tests::programs::tool::PATIENCE;
use systemscope_tests::{Folded, Tool, Turn, Workload, cpus_online};

#[test]
#[ignore = "loads every CPU beside three tools"]
fn profilers_at_work_show_none_of_themselves() {
    let _turn = Turn::share();
    // Two processes on one CPU wait for each other. Unlike the wait for a timer, such a wait never
    // ends before it begins.
    let _ping_pong = Workload::start("ping_pong", &[0]);
    let mut spinners = Workload::start("spinners", &[cpus_online(), 60]);
    spinners.go();
    // There are tens of thousands of switches. The BPF programs of two tools measure each switch,
    // and the third tool samples these programs.
    let off = Tool::new("offcputime").args("-a 2").start();
    let wake = Tool::new("offwaketime").args("-a --chain 4 2").start();
    let on = Tool::new("oncputime").args("-a -F 997 2").start();
    let [off, wake, on] = [off, wake, on].map(|tool| {
        let finished = tool.finish_within(PATIENCE).succeeded();
        Folded::parse(&finished.stdout)
    });
    let of_ping_pong = |folded: &Folded| folded.only(|line| line.comm == "ping_pong").total();
    assert!(of_ping_pong(&off) > 0, "{off:.20}");
    assert!(of_ping_pong(&wake) > 0, "{wake:.20}");
    assert!(on.under("spin").total() > 0, "{on:.20}");
}
