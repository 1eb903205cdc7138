//! Threads that are blocked before the window opens and after it closes, and
//! threads that are born or end inside it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use systemscope_tests::output::{assert_close, per_mille};
use systemscope_tests::{
    Folded, Running, Seen, Tool, Turn, Watch, Workload, patiently, undisturbed,
};

const MILLISECOND: u64 = 1_000_000;

fn births() -> (Workload, Seen) {
    undisturbed(|| {
        let mut births = Workload::plain("births");
        let mut watch = Watch::offcputime(births.pid(), "");
        watch.open();
        births.go();
        births.wait_done();
        let seen = watch.close();
        seen.is_whole().then_some((births, seen))
    })
}

/// A time that the program can only tell from before and after it, with what
/// the way from one to the other may take more on top.
#[track_caller]
fn assert_between(what: &str, time_ns: u64, births: &Workload, [from, to]: [&str; 2], more: u64) {
    let (from, to) = (births.told(from), births.told(to));
    assert!(
        (from..=to + more).contains(&time_ns),
        "{what}: {time_ns} is not from {from} to {to}"
    );
}

fn sleep_1000() -> Running {
    let mut command = Command::new("sleep");
    command.arg("1000");
    let running = Running::spawn(command, true);
    sleep(Duration::from_millis(100));
    running
}

fn is_nanosleep(folded: &Folded) -> bool {
    folded
        .lines
        .iter()
        .all(|line| line.frames.iter().any(|frame| frame.contains("nanosleep")))
}

#[test]
fn a_thread_asleep_throughout_has_the_whole_window() {
    let _turn = Turn::take();
    let stacks = patiently(|| {
        let (births, seen) = births();
        let row = seen.clock("lasting");
        assert_eq!(u64::from(row.tid), births.told("lasting"));
        assert_close(
            "blocked",
            row.blocked_ns,
            seen.window_ns(),
            per_mille(seen.window_ns(), 5),
        );
        let stacks = seen.folded.of_thread(row.tid);
        assert_close(
            "its stacks",
            stacks.total(),
            seen.window_ns(),
            per_mille(seen.window_ns(), 5),
        );
        stacks
    });
    assert!(
        stacks
            .lines
            .iter()
            .all(|line| line.has_path(&["lasting", "lasting_sleep"])),
        "{stacks:#?}"
    );
    assert!(is_nanosleep(&stacks), "{stacks:#?}");
}

#[test]
fn a_thread_born_in_the_window_is_there_from_its_birth() {
    let _turn = Turn::take();
    patiently(assert_there_from_its_birth);
}

fn assert_there_from_its_birth() {
    let (births, seen) = births();
    let row = seen.clock("born");
    assert_eq!(u64::from(row.tid), births.told("born"));
    assert_between(
        "born",
        row.started_ns,
        &births,
        ["born-start", "born-up"],
        0,
    );
    assert_close(
        "alive to the end",
        row.ended_ns,
        seen.stopped_ns,
        5 * MILLISECOND,
    );
    assert_close(
        "sum",
        row.accounted_ns(),
        row.lifetime_ns(),
        per_mille(row.lifetime_ns(), 5),
    );
    let waited = seen.folded.of_thread(row.tid).under("born_wait").total();
    assert_close(
        "its stack",
        waited,
        row.blocked_ns,
        per_mille(row.blocked_ns, 20),
    );
}

#[test]
fn a_thread_that_ends_in_the_window_is_there_until_its_end() {
    let _turn = Turn::take();
    patiently(assert_there_until_its_end);
}

fn assert_there_until_its_end() {
    let (births, seen) = births();
    let row = seen.clock("ending");
    assert_eq!(u64::from(row.tid), births.told("ending"));
    assert_close(
        "there at the start",
        row.started_ns,
        seen.started_ns,
        5 * MILLISECOND,
    );
    let end = ["ending-end", "ending-gone"];
    // Who waits for it is woken a moment before.
    assert_between("end", row.ended_ns, &births, end, 20 * MILLISECOND);
    assert_close(
        "sum",
        row.accounted_ns(),
        row.lifetime_ns(),
        per_mille(row.lifetime_ns(), 5),
    );
    let waited = seen
        .folded
        .of_thread(row.tid)
        .under("wait_to_leave")
        .total();
    assert_close(
        "its stack",
        waited,
        row.blocked_ns,
        per_mille(row.blocked_ns, 20),
    );
}

#[test]
fn a_thread_that_is_born_and_ends_in_the_window_is_there() {
    let _turn = Turn::take();
    patiently(assert_there_all_its_life);
}

fn assert_there_all_its_life() {
    let (births, seen) = births();
    let row = seen.clock("brief");
    let (start, end) = (["brief-start", "brief-up"], ["brief-end", "brief-gone"]);
    assert_between("born", row.started_ns, &births, start, 0);
    assert_between("end", row.ended_ns, &births, end, 20 * MILLISECOND);
    let slept = seen.folded.of_thread(row.tid).under("brief_sleep").total();
    let truth = births.told("brief-slept");
    assert_close("its sleep", slept, truth, 10 * MILLISECOND);
}

#[test]
fn sleep_1000_has_the_whole_window() {
    let _turn = Turn::take();
    let target = sleep_1000();
    let folded = patiently(|| {
        let folded = Tool::new("offcputime").pid(target.pid()).folded(2.0);
        assert_close("off CPU, in us", folded.total(), 2_000_000, 10_000);
        folded
    });
    assert!(is_nanosleep(&folded), "{folded:#?}");
    assert_eq!(folded.comms().into_iter().collect::<Vec<_>>(), ["sleep"]);
}

#[test]
fn sleep_1000_is_there_among_all_of_the_machine() {
    let _turn = Turn::take();
    let target = sleep_1000();
    let slept = patiently(|| {
        let folded = Tool::new("offcputime")
            .args("-m 1000")
            .folded_per_thread(2.0);
        let slept = folded.of_thread(target.pid());
        assert_close("off CPU, in us", slept.total(), 2_000_000, 10_000);
        slept
    });
    assert!(is_nanosleep(&slept), "{slept:#?}");
}

#[test]
fn a_stopped_process_is_blocked() {
    let _turn = Turn::take();
    let target = sleep_1000();
    target.signal(rustix::process::Signal::STOP);
    patiently(|| {
        let folded = Tool::new("offcputime")
            .pid(target.pid())
            .args("--states")
            .folded(1.0);
        assert_close(
            "blocked, in us",
            folded.marked("_[o]").total(),
            1_000_000,
            10_000,
        );
    });
}
