//! Processes with a new stack at every wait, and what they cost other processes.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::thread::sleep;
use std::time::Duration;

use systemscope_tests::{ClockRow, Seen, Tool, Turn, Watch, Workload};

/// Length of each nap of the sleeper, in µs.
const NAP_US: u64 = 1000;
const SECONDS: u64 = 6;

/// Runs `tool` on the whole machine beside three floods of new stacks and a thread that takes naps.
/// Returns the results of the tool, and the floods. A loss is a failure, and no reason to measure
/// again.
#[track_caller]
fn watch_floods(attach: fn(Tool) -> Watch, tool: &str) -> (Seen, Vec<Workload>) {
    let _turn = Turn::take();
    let mut floods: Vec<Workload> = (0..3).map(|_| Workload::plain("flood")).collect();
    let mut naps = Workload::start("naps", &[SECONDS, NAP_US]);
    let mut watch = attach(Tool::new(tool));
    watch.open();
    floods.iter_mut().for_each(Workload::go);
    // After this time the floods have filled everything that processes share.
    sleep(Duration::from_secs(2));
    naps.go();
    naps.wait_done();
    floods.iter_mut().for_each(Workload::go);
    floods.iter_mut().for_each(Workload::wait_done);
    let (seen, _) = watch.close_however_big();
    assert_floods_paid(&seen, &floods);
    assert_whole(&seen, &naps);
    (seen, floods)
}

/// Checks that at most one nap in a thousand is missing.
#[track_caller]
fn assert_whole(seen: &Seen, naps: &Workload) {
    let of_naps = seen.folded.of_thread(naps.pid());
    let is_missed = |name: &String| name.starts_with("[Missed");
    let missed = of_naps.only(|line| line.frames.iter().any(is_missed));
    let shown = of_naps.under("nap").total();
    // A nap begins some microseconds before its thread blocks.
    let least = naps.told("count") * (NAP_US - 10) * 1000;
    let figures = format!(
        "missed {} ns, shown {shown} ns of at least {least}, lost {:?}",
        missed.total(),
        seen.lost
    );
    println!("{figures}");
    assert!(
        missed.total() * 1000 < shown && shown >= least,
        "{figures}{missed}"
    );
}

/// Checks that the floods exceeded the capacity for stacks, and that the tool reports the missing
/// stacks.
#[track_caller]
fn assert_floods_paid(seen: &Seen, floods: &[Workload]) {
    let sleeps: u64 = floods.iter().map(|flood| flood.told("count")).sum();
    let stacks = seen.lost["stacks"];
    assert!(stacks * 10 > sleeps, "{stacks} of {sleeps}: no flood");
    let said = format!(" {stacks} stacks");
    assert!(seen.stderr.contains(&said), "{}", seen.stderr);
}

#[test]
#[ignore = "floods the machine for 8 s, and needs a quiet one: a hidden switch costs a nap"]
fn a_flood_of_stacks_costs_other_processes_nothing() {
    let (seen, floods) = watch_floods(Watch::with_clocks, "offcputime");
    // The tool shows the whole time of the floods, with or without a stack.
    let pids: Vec<u32> = floods.iter().map(Workload::pid).collect();
    let of_floods = |clock: &&ClockRow| pids.contains(&clock.pid);
    for clock in seen.clocks.iter().filter(of_floods) {
        let booked = clock.blocked_ns + clock.runnable_ns;
        let shown = seen.folded.of_thread(clock.tid).total();
        assert!(
            shown.abs_diff(booked) * 1000 <= seen.window_ns(),
            "{shown} of {booked} ns of {clock:?}"
        );
    }
}

#[test]
#[ignore = "floods the machine for 8 s, and needs a quiet one: a hidden switch costs a nap"]
fn a_flood_of_stacks_costs_others_no_wakers() {
    watch_floods(Watch::apart, "offwaketime");
}
