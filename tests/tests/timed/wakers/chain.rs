//! `--chain`: the waker, the waker's waker, and so on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashSet;
use std::time::Duration;

use systemscope_tests::printed::output::{assert_close, per_mille};
use systemscope_tests::printed::user_stacks::assert_most;
use systemscope_tests::printed::wakers::{STILL_BLOCKED, TIMER, Waker};
use systemscope_tests::{Folded, Line, Seen, Tool, Turn, Watch, Workload, cpus_online, patiently};

const WINDOW: Duration = Duration::from_secs(2);

/// Starts the processes a → b → c → d.
fn pipeline() -> (Workload, u32) {
    let mut pipeline = Workload::plain("pipeline");
    pipeline.go();
    let d = u32::try_from(pipeline.told("d")).unwrap();
    (pipeline, d)
}

/// Starts two processes that wake each other.
fn wake_pair() -> (Workload, u32, u32) {
    let mut pair = Workload::plain("wake_pairs");
    pair.go();
    let [asker, answerer] =
        ["asker", "answerer"].map(|name| u32::try_from(pair.told(name)).unwrap());
    (pair, asker, answerer)
}

/// Runs offwaketime and offcputime on one process in one window.
fn with_offcputime(pid: u32, arguments: &str) -> (Seen, Seen) {
    let mut wakes = Watch::apart(Tool::new("offwaketime").pid(pid).args(arguments));
    let mut off = Watch::apart(Tool::new("offcputime").pid(pid).args("--states"));
    Watch::open_together([&mut wakes, &mut off], WINDOW);
    (wakes.close_however_big().0, off.close())
}

fn chain_of(pid: u32, arguments: &str) -> Folded {
    chain_in(Watch::apart(
        Tool::new("offwaketime").pid(pid).args(arguments),
    ))
}

fn chain_in(mut watch: Watch) -> Folded {
    watch.open();
    std::thread::sleep(WINDOW);
    // With chains every thread of the machine has a clock.
    watch.close_however_big().0.waits_but_missed().ended()
}

/// Returns whether a line has the wait in d, and the functions in which each process woke the next
/// one.
fn is_whole_chain(line: &Line) -> bool {
    let steps = [
        ("stage_c", ["run_c", "c_wakes_d"]),
        ("stage_b", ["run_b", "b_wakes_c"]),
        ("stage_a", ["main", "a_wakes_b"]),
    ];
    let wakers = line.wakers();
    let is_step = |(waker, (comm, path)): (&Waker, (&str, [&str; 2]))| {
        waker.comm == comm && waker.has_path(&path)
    };
    line.comm == "stage_d"
        && line.sleeper().has_path(&["run_d", "d_waits"])
        && wakers.len() == steps.len()
        && wakers.iter().zip(steps).all(is_step)
}

/// Returns the line with the largest value.
fn longest(folded: &Folded) -> &Line {
    let longest = folded.lines.iter().max_by_key(|line| line.value);
    longest.expect("a line")
}

fn assert_one_chain_has_all_of_the_time() {
    let (_pipeline, d) = pipeline();
    let (wakes, off) = with_offcputime(d, "-U --chain 3");
    let known = wakes.waits_but_missed();
    // A label in place of the chain marks an event that the machine hid.
    let missed_ns = wakes.folded.total() - known.total();
    // The last wait is still open when the window closes.
    let open_ns = known.woken_by(STILL_BLOCKED).total();
    let blocked_ns = off.folded.marked("_[o]").total();
    let dominant = longest(&known);
    assert!(is_whole_chain(dominant), "{known}");
    assert_close(
        "the time in the chain of three",
        dominant.value + missed_ns + open_ns,
        blocked_ns,
        per_mille(blocked_ns, 10),
    );
    assert!(
        missed_ns * 20 < blocked_ns,
        "{missed_ns} of {blocked_ns} ns are not known"
    );
}

#[test]
fn one_chain_of_three_has_the_time_of_a_pipelines_end() {
    let _turn = Turn::share();
    patiently(assert_one_chain_has_all_of_the_time);
}

#[test]
#[ignore = "loads every CPU"]
fn one_chain_of_three_on_a_busy_machine() {
    let _turn = Turn::share();
    let mut spinners = Workload::start("spinners", &[cpus_online(), 60]);
    spinners.go();
    patiently(assert_one_chain_has_all_of_the_time);
}

/// Checks that `named` of the `hops` requested wakers are in the chain.
fn assert_as_long(d: u32, hops: usize, named: usize) {
    let names = ["stage_c", "stage_b", "stage_a", TIMER];
    let folded = chain_of(d, &format!("--chain {hops}"));
    let what = format!("the chain of {hops}");
    assert_most(&what, &folded, 990, |line| {
        line.waker_comms() == names[..named]
    });
    let beyond = folded.only(|line| line.wakers().len() > named);
    assert_eq!(beyond.total(), 0, "{what}:{beyond}");
}

#[test]
#[ignore = "measures chains of every length, one after another"]
fn a_chain_is_as_long_as_asked_for_and_ends_in_the_timer() {
    let _turn = Turn::share();
    let (_pipeline, d) = pipeline();
    for (hops, named) in [(1, 1), (2, 2), (4, 4), (8, 4)] {
        patiently(|| assert_as_long(d, hops, named));
    }
}

#[test]
fn nobody_comes_twice_in_a_chain() {
    let _turn = Turn::share();
    let (_pair, asker, answerer) = wake_pair();
    let folded = chain_of(asker, "--chain 8");
    for line in &folded.lines {
        let mut seen = HashSet::from([line.thread]);
        let wakers = line.wakers();
        let mut threads = wakers.iter().filter(|waker| waker.thread.is_some());
        assert!(threads.all(|waker| seen.insert(waker.thread)), "{line}");
    }
    // The waker of the answerer is the asker. The asker is the sleeper itself.
    assert_most("the chain of two", &folded.of_thread(asker), 990, |line| {
        line.wakers().len() == 1 && line.waker().thread.unwrap().1 == answerer
    });
}

/// A chain tells threads apart even if the lines do not show thread IDs.
#[test]
#[ignore = "the test before it covers this rule, with threads apart"]
fn nobody_comes_twice_where_threads_of_a_name_are_taken_together() {
    let _turn = Turn::share();
    let (_pair, asker, _) = wake_pair();
    let tool = Tool::new("offwaketime").pid(asker).args("--chain 8");
    let folded = chain_in(Watch::together(tool));
    assert_most("the chain of two", &folded, 990, |line| {
        line.comm == "asker" && line.waker_comms() == ["answerer"]
    });
}
