//! Many call paths, many threads and many exits. The tools lose no time, and invent none.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::cell::Cell;
use std::collections::HashSet;

use systemscope_tests::printed::output::per_mille;
use systemscope_tests::printed::samples::Interruptions;
use systemscope_tests::{Folded, Seen, Tool, Turn, Watch, Workload, undisturbed};

const LEVELS: usize = 12;
/// Turns of a leaf's loop, which take some microseconds.
const SHORT: u64 = 3000;

/// Returns the complete paths through the call tree of `paths`.
fn paths_seen(folded: &Folded) -> HashSet<Vec<&str>> {
    let mut paths = HashSet::new();
    for line in &folded.lines {
        let frames: Vec<&str> = line.frames.iter().map(String::as_str).collect();
        let Some(root) = frames.iter().position(|frame| *frame == "root_of_tree") else {
            continue;
        };
        let path = &frames[root + 1..];
        if path.get(LEVELS).is_some_and(|frame| *frame == "leaf") {
            paths.insert(path[..LEVELS].to_vec());
        }
    }
    paths
}

/// Measures all of `paths` in a window, with two rounds of `turns` turns at each leaf. Returns the
/// program and the results of the tool.
fn watch_paths(
    turns: u64,
    attach: impl Fn(u32) -> Watch,
    is_clear: impl Fn(&Seen) -> bool,
) -> (Workload, Seen) {
    let (paths, seen) = undisturbed(|| {
        let mut paths = Workload::start("paths", &[2, LEVELS as u64, turns]);
        let mut watch = attach(paths.pid());
        watch.open();
        paths.go();
        paths.wait_done();
        let seen = watch.close();
        is_clear(&seen).then_some((paths, seen))
    });
    // Each state has its own missed stack.
    let missed = seen
        .folded
        .only(|line| line.frames.iter().any(|name| name.starts_with("[Missed")));
    let missed = missed.lines.len() as u64;
    assert!(
        missed <= 2 * hidden(&seen),
        "{missed} stacks missed: {:?}",
        seen.lost
    );
    (paths, seen)
}

/// Returns the number of switches that the machine hid, by the tool's report. Each hidden switch
/// costs one interval its stack. Nothing else may be lost.
fn hidden(seen: &Seen) -> u64 {
    let hidden = seen.lost.get("events").copied().unwrap_or(0);
    assert!(seen.lost["stacks"] <= hidden, "{:?}", seen.lost);
    hidden
}

/// Returns whether at most one switch in a hundred was hidden.
fn is_mostly_seen(seen: &Seen) -> bool {
    hidden(seen) * 100 < 2 << LEVELS
}

/// Checks the paths of all sleeps. Each leaf sleeps twice. A sleep that ends before the thread
/// leaves its CPU has no switch.
#[track_caller]
fn assert_all_slept(paths: &Workload, seen: &Seen) {
    let hidden = hidden(seen);
    let seen = paths_seen(&seen.folded).len() as u64;
    let unswitched = paths.told("unswitched");
    assert!(
        seen <= 1 << LEVELS && seen + unswitched + hidden >= 1 << LEVELS,
        "{seen} paths, {unswitched} sleeps without a switch, {hidden} hidden"
    );
}

#[test]
fn all_of_4096_paths_are_seen_off_cpu() {
    let _turn = Turn::share();
    let attach = |pid| Watch::offcputime(pid, "");
    let (paths, seen) = watch_paths(SHORT, attach, is_mostly_seen);
    assert_all_slept(&paths, &seen);
}

#[test]
#[ignore = "4,096 waits of several ms, a second time"]
fn all_of_4096_paths_are_seen_with_threads_taken_together() {
    let _turn = Turn::share();
    let attach = |pid| Watch::together(Tool::new("offcputime").pid(pid));
    let (paths, seen) = watch_paths(SHORT, attach, is_mostly_seen);
    assert_all_slept(&paths, &seen);
}

#[test]
#[ignore = "samples for many seconds"]
fn thousands_of_paths_are_sampled_without_a_loss() {
    let _turn = Turn::share();
    // Number of turns that takes longer than a sampling period, because the sampling timer may
    // coincide with the timer that ends the sleeps.
    const LONG: u64 = 1_000_000;
    let (traced, interruptions) = (Cell::new(None), Cell::new(0));
    let attach = |pid| {
        traced.set(Some(Interruptions::watch(pid)));
        Watch::oncputime(pid, "-F 4999")
    };
    // The tool has no more samples than the trace of the test.
    let is_clear = |seen: &Seen| {
        interruptions.set(traced.take().unwrap().stop());
        seen.folded.total() <= interruptions.get()
    };
    let (_, seen) = watch_paths(LONG, attach, is_clear);
    seen.assert_nothing_lost();
    let (paths, samples) = (paths_seen(&seen.folded).len(), seen.folded.total());
    assert_eq!(samples, interruptions.get());
    // Expected number of paths if each sample hit a random path.
    let all = f64::from(1 << LEVELS);
    let by_chance = all * (1.0 - (-(samples as f64) / all).exp());
    assert!(
        samples > 0 && paths as f64 >= 0.95 * by_chance,
        "{paths} paths in {samples} samples, {by_chance:.0} by chance"
    );
}

/// Checks the last thread's sleep, which begins when the thread reports it, or a moment later.
#[track_caller]
fn assert_slept(lives: &Workload, shown_ns: u64) {
    let truth = lives.told("late-over") - lives.told("late-up");
    assert!(
        shown_ns >= per_mille(truth, 950),
        "{shown_ns} of {truth} ns of the late sleep"
    );
}

#[test]
#[ignore = "starts thousands of threads"]
fn many_short_lives_invent_no_time() {
    const THREADS: usize = 45_000;
    const ALIVE: u64 = 16;
    let _turn = Turn::share();
    let mut lives = Workload::start("short_lives", &[THREADS as u64, ALIVE]);
    let mut watch = Watch::offcputime(lives.pid(), "");
    watch.open();
    lives.go();
    lives.wait_done();
    let seen = watch.close();

    // At most a batch of threads, the main thread and the sleeper at the end live at once. A joined
    // thread may not have exited yet.
    let most_ns = seen.window_ns() * (ALIVE + 3);
    let lifetimes: u64 = seen
        .clocks
        .iter()
        .map(systemscope_tests::ClockRow::lifetime_ns)
        .sum();
    assert!(
        lifetimes <= most_ns,
        "{lifetimes} ns of life, {most_ns} ns at most"
    );
    assert!(
        seen.folded.total() <= lifetimes,
        "{} ns off CPU in {lifetimes} ns of life",
        seen.folded.total()
    );
    for row in &seen.clocks {
        let inside = row.started_ns >= seen.started_ns && row.ended_ns <= seen.stopped_ns;
        assert!(
            inside && row.started_ns <= row.ended_ns,
            "outside of the window: {row:?}"
        );
        assert_eq!(row.accounted_ns(), row.lifetime_ns(), "{row:?}");
    }
    assert_eq!(
        seen.folded.under("do_task_dead").total(),
        0,
        "time after death"
    );

    let lost = seen.lost.get("threads").copied().unwrap_or(0);
    let seen_threads = seen.clocks.len();
    assert!(
        seen_threads as u64 + lost >= THREADS as u64,
        "{seen_threads} threads seen, {lost} lost"
    );
    let sleeper = seen.clock("late-sleeper");
    let slept = seen.folded.of_thread(sleeper.tid).under("late_sleep");
    assert_slept(&lives, slept.total());
    // A switch that the machine hid costs one interval's stack.
    let hidden = seen.lost["events"];
    assert!(seen.lost["stacks"] <= hidden, "{:?}", seen.lost);
}

#[test]
#[ignore = "starts 20,000 threads"]
fn a_sleeper_after_20000_exits_is_there() {
    let _turn = Turn::share();
    let mut lives = Workload::start("short_lives", &[20_000]);
    // The tool traces the whole machine, so only exits free capacity.
    let mut watch = Watch::together(Tool::new("offcputime").args("-m 1000"));
    watch.open();
    lives.go();
    lives.wait_done();
    let (seen, _) = watch.close_however_big();
    let slept = seen.folded.under("late_sleep");
    assert_slept(&lives, slept.total() * 1000);
    assert_eq!(
        slept.comms().into_iter().collect::<Vec<_>>(),
        ["late-sleeper"]
    );
    assert_eq!(
        seen.folded.under("do_task_dead").total(),
        0,
        "time after death"
    );
}
