//! cpudist's off-CPU time. No time is lost between two intervals, and blocked and runnable time are
//! separate.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;
use systemscope_tests::printed::spans::{Interval, Spans, close, watch};
use systemscope_tests::programs::tool::PATIENCE;
use systemscope_tests::truth::account::stolen_ns;
use systemscope_tests::{Tool, Turn, Workload, accounts_at_rest, patiently};

fn total(spans: &Spans) -> u64 {
    spans.intervals.iter().map(Interval::total_ns).sum()
}

fn window(spans: &Spans) -> u64 {
    spans.intervals.iter().map(Interval::length_ns).sum()
}

/// A nap crosses the end of nearly every interval.
#[test]
fn intervals_hold_all_of_the_time_off_the_cpu() {
    let _turn = Turn::share();
    patiently(|| {
        let mut naps = Workload::start("naps", &[2, 3000]);
        let pid = naps.pid();
        let tool = watch(&format!("-p {pid} -O 0.01"));
        let (before, stolen) = (accounts_at_rest(pid)[&pid], stolen_ns());
        naps.go();
        naps.wait_done();
        let running = accounts_at_rest(pid)[&pid].since(before).running_ns;
        let stolen = stolen_ns() - stolen;
        let spans = close(tool);
        let (shown, window) = (total(&spans), window(&spans));
        // Running time begins a little earlier in the kernel's account than in the tool.
        let off = window - running - stolen;
        assert!(
            shown * 100 >= off * 97,
            "{shown} of {off} ns: {} intervals",
            spans.intervals.len()
        );
    });
}

fn held(flag: &str) -> (Workload, Spans) {
    let mut held = Workload::start("held", &[60]);
    let tool = watch(&format!("-t {} {flag}", held.told("sleeper")));
    held.go();
    held.wait_done();
    let spans = close(tool);
    (held, spans)
}

#[test]
fn blocked_and_runnable_are_all_of_it() {
    let _turn = Turn::share();
    patiently(|| {
        let (held, blocked) = held("--blocked");
        let (blocked, window) = (total(&blocked), window(&blocked));
        assert!(
            blocked + held.told("held") <= window,
            "{blocked} of {window} ns blocked"
        );
        assert!(
            blocked >= held.told("peace") / 2,
            "{blocked} of {window} ns blocked"
        );
    });
    patiently(|| {
        let (held, waiting) = held("--runq");
        let (waiting, window) = (total(&waiting), window(&waiting));
        assert!(
            waiting >= held.told("held"),
            "{waiting} of {window} ns waiting"
        );
        assert!(
            waiting + held.told("peace") / 2 <= window,
            "{waiting} of {window} ns waiting"
        );
    });
}

/// The last thread to end has another name. The process is gone before the tool can read the
/// process's name.
#[test]
fn a_process_that_ended_has_its_leaders_name() {
    let _turn = Turn::share();
    let running = Tool::new("cpudist").args("-P").start_measuring();
    running.signal(Signal::STOP);
    let mut leaderless = Workload::plain("leaderless");
    let pid = leaderless.pid();
    leaderless.go();
    while leaderless.is_running() {
        sleep(Duration::from_millis(1));
    }
    // The process ID exists no more.
    drop(leaderless);
    running.signal(Signal::CONT);
    running.signal(Signal::INT);
    let finished = running.finish_within(PATIENCE).succeeded();
    let text = String::from_utf8(finished.stdout).unwrap();
    let name = format!("pid = {pid} leaderless");
    assert!(text.contains(&name), "{text}");
}
