//! Threads that are blocked before the window opens and after it closes, and threads that begin or
//! end inside the window.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::thread::sleep;
use std::time::Duration;

use systemscope_tests::truth::account::state_of;
use systemscope_tests::{
    ClockRow, Folded, Running, Seen, Tool, Turn, Watch, Workload, patiently, undisturbed,
};

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

/// Checks the off-CPU time in `function` of a thread that hardly runs. The missing time is at most
/// the running time of the thread's clock.
#[track_caller]
fn assert_off_cpu_in(function: &str, seen: &Seen, row: &ClockRow, truth_ns: u64) {
    let shown = seen.folded.of_thread(row.tid).under(function).total();
    let least = truth_ns.saturating_sub(row.running_ns);
    assert!(
        (least..=truth_ns).contains(&shown),
        "{shown} ns in {function}, {truth_ns} ns by the program: {row:?}"
    );
}

/// Checks that nearly all off-CPU time of a thread is in the one function in which it waits.
#[track_caller]
fn assert_waits_in(function: &str, seen: &Seen, row: &ClockRow) {
    let shown = seen.folded.of_thread(row.tid).under(function).total();
    let off_cpu = row.blocked_ns + row.runnable_ns;
    assert!(
        shown <= off_cpu && shown * 100 >= row.blocked_ns * 98,
        "{shown} ns in {function}: {row:?}"
    );
}

/// Checks a time that the program knows only by an earlier and a later time. `more` is added to the
/// later time.
#[track_caller]
fn assert_between(what: &str, time_ns: u64, births: &Workload, [from, to]: [&str; 2], more: u64) {
    let (from, to) = (births.told(from), births.told(to));
    assert!(
        (from..=to + more).contains(&time_ns),
        "{what}: {time_ns} is not from {from} to {to}"
    );
}

/// Returns how long a thread can live after it wakes the thread that waits for its end. Until its
/// end the thread runs or waits for a CPU, for no longer than its clock counts.
fn last_words(row: &ClockRow) -> u64 {
    row.running_ns + row.runnable_ns
}

/// Returns whether each stack has both parts: the library's function and the kernel's function.
fn is_nanosleep(folded: &Folded) -> bool {
    let mut lines = folded.lines.iter();
    lines.all(|line| line.has("hrtimer_nanosleep") && line.frames.len() > 4)
}

#[test]
fn a_thread_asleep_throughout_has_the_whole_window() {
    let _turn = Turn::share();
    let stacks = patiently(|| {
        let (births, seen) = births();
        let row = seen.clock("lasting");
        assert_eq!(u64::from(row.tid), births.told("lasting"));
        let stacks = seen.folded.of_thread(row.tid);
        let window = seen.window_ns();
        assert_eq!((row.blocked_ns, stacks.total()), (window, window));
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
    let _turn = Turn::share();
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
    assert_eq!(row.ended_ns, seen.stopped_ns, "alive to the end");
    assert_eq!(row.accounted_ns(), row.lifetime_ns());
    assert_waits_in("born_wait", &seen, row);
}

#[test]
fn a_thread_that_ends_in_the_window_is_there_until_its_end() {
    let _turn = Turn::share();
    patiently(assert_there_until_its_end);
}

fn assert_there_until_its_end() {
    let (births, seen) = births();
    let row = seen.clock("ending");
    assert_eq!(u64::from(row.tid), births.told("ending"));
    assert_eq!(row.started_ns, seen.started_ns, "there at the start");
    let end = ["ending-end", "ending-gone"];
    assert_between("end", row.ended_ns, &births, end, last_words(row));
    assert_eq!(row.accounted_ns(), row.lifetime_ns());
    assert_waits_in("wait_to_leave", &seen, row);
}

#[test]
fn a_thread_that_is_born_and_ends_in_the_window_is_there() {
    let _turn = Turn::share();
    patiently(assert_there_all_its_life);
}

fn assert_there_all_its_life() {
    let (births, seen) = births();
    let row = seen.clock("brief");
    let (start, end) = (["brief-start", "brief-up"], ["brief-end", "brief-gone"]);
    assert_between("born", row.started_ns, &births, start, 0);
    assert_between("end", row.ended_ns, &births, end, last_words(row));
    assert_off_cpu_in("brief_sleep", &seen, row, births.told("brief-slept"));
}

#[test]
fn sleep_1000_has_the_whole_window() {
    let _turn = Turn::share();
    let target = Running::asleep();
    let folded = patiently(|| {
        let folded = Tool::new("offcputime").pid(target.pid()).folded(2.0);
        assert_eq!(folded.total(), 2_000_000, "us off CPU");
        folded
    });
    assert!(is_nanosleep(&folded), "{folded:#?}");
    assert_eq!(folded.comms().into_iter().collect::<Vec<_>>(), ["sleep"]);
}

#[test]
#[ignore = "measures the whole machine beside other tests"]
fn sleep_1000_is_there_among_all_of_the_machine() {
    let _turn = Turn::share();
    let target = Running::asleep();
    let slept = patiently(|| {
        let folded = Tool::new("offcputime")
            .args("-m 1000")
            .folded_per_thread(2.0);
        let slept = folded.of_thread(target.pid());
        assert_eq!(slept.total(), 2_000_000, "us off CPU");
        slept
    });
    assert!(is_nanosleep(&slept), "{slept:#?}");
}

#[test]
fn a_stopped_process_is_blocked() {
    let _turn = Turn::share();
    let target = Running::asleep();
    target.signal(rustix::process::Signal::STOP);
    while state_of(target.pid(), target.pid()) != Some('T') {
        sleep(Duration::from_millis(1));
    }
    patiently(|| {
        let folded = Tool::new("offcputime")
            .pid(target.pid())
            .args("--states")
            .folded(1.0);
        assert_eq!(folded.marked("_[o]").total(), 1_000_000, "us blocked");
    });
}
