//! Real-time threads that leave other threads no CPU. A tool takes longer then, and says why.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::Duration;

use systemscope_tests::programs::process::Running;
use systemscope_tests::{Folded, Tool, Turn, Workload, cpus_online};

/// Run time of the real-time threads, in s. It is longer than a tool needs to attach and to end on
/// the remaining CPU time.
const SECONDS: u32 = 15;

#[test]
#[ignore = "takes all CPUs from other programs for seconds"]
fn what_waits_for_real_time_threads_says_so() {
    let _turn = Turn::take();
    let sleeper = Running::asleep();
    let mut busy = Workload::start("real_time", &[SECONDS]);
    busy.go();
    let tool = Tool::new("offcputime")
        .args("--nanoseconds")
        .pid(sleeper.pid());
    let running = tool.arg("1").start();
    let finished = running.finish_within(Duration::from_secs(120)).succeeded();
    let slept = Folded::parse(&finished.stdout).total();
    assert_eq!(slept, 1_000_000_000, "{}", finished.stderr);
    let (_, said) = finished
        .stderr
        .split_once(" so far: real-time threads take ")
        .unwrap();
    let named =
        (0..cpus_online().min(4)).all(|cpu| said.contains(&format!("CPU {cpu} (`real_time`, ")));
    assert!(named, "{}", finished.stderr);
}
