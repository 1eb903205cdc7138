//! User stacks do not depend on when BPF programs capture them: as a thread leaves its CPU, or as
//! it returns to user mode. Programs capture them at the return since kernel 6.15, if `-m` leaves
//! short waits out.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::thread::sleep;
use std::time::Duration;

use systemscope_tests::printed::output::per_mille;
use systemscope_tests::{Folded, Seen, Tool, Turn, Watch, Workload, patiently};

/// Flags that keep all waits, and flags that keep waits longer than 1 ms.
const THRESHOLDS: [&str; 2] = ["-m 0", "-m 1000"];

const WORKERS: u64 = 3;

/// First kernel frame of a system call.
const SYSTEM_CALL: &str = "entry_SYSCALL_64_after_hwframe";

/// Minimum length of the workers' last wait.
const LAST_WAIT: Duration = Duration::from_millis(300);

#[test]
fn waits_that_end_and_waits_that_do_not_have_whole_stacks() {
    let _turn = Turn::share();
    for arguments in THRESHOLDS {
        patiently(|| assert_whole(arguments));
    }
}

fn assert_whole(arguments: &str) {
    let mut phases = Workload::start("phases", &[1, WORKERS]);
    let mut watch = Watch::offcputime(phases.pid(), arguments);
    watch.open();
    phases.go();
    phases.wait_done();
    sleep(LAST_WAIT);
    let seen = watch.close();
    let folded = seen.folded_but_missed();
    for worker in 0..WORKERS {
        let tid = phases.told(&format!("worker-{worker}")) as u32;
        let own = folded.of_thread(tid);
        for function in ["g", "h", "i"] {
            let shown = path(&own, &["work", "one_round", function]);
            // The program's own measure includes the system calls.
            let truth = phases.told(&format!("{function}-{worker}"));
            assert!(
                (per_mille(truth, 950)..=truth).contains(&shown),
                "{arguments}: {shown} of {truth} ns in {function}{own}"
            );
        }
        // This sum includes the kernel frames of the wait.
        let last = path(&own, &["work", SYSTEM_CALL]);
        assert!(
            u128::from(last) >= LAST_WAIT.as_nanos(),
            "{arguments}: {last} ns in the last wait{own}"
        );
    }
    assert_only_hidden_switches_miss_stacks(&seen);
}

/// Returns the nanoseconds in stacks in which these functions call each other.
fn path(folded: &Folded, functions: &[&str]) -> u64 {
    folded.only(|line| line.has_path(functions)).total()
}

/// Checks that no stack is missing but those of switches that the machine hid from programs.
#[track_caller]
fn assert_only_hidden_switches_miss_stacks(seen: &Seen) {
    let [events, stacks] = ["events", "stacks"].map(|what| seen.lost[what]);
    assert!(stacks <= events, "{}", seen.stderr);
}

#[test]
fn a_wait_that_a_kill_ends_has_its_stack() {
    let _turn = Turn::share();
    for arguments in THRESHOLDS {
        let simple = Workload::plain("simple");
        let tool = Tool::new("offcputime").pid(simple.pid());
        let running = tool.args(arguments).start_measuring();
        sleep(LAST_WAIT);
        simple.kill();
        let finished = running.finish_within(Duration::from_secs(60)).succeeded();
        let folded = Folded::parse(&finished.stdout);
        let waited = folded.under("leave_with_test").total();
        assert!(
            u128::from(waited) >= LAST_WAIT.as_micros(),
            "{arguments}: {waited} us{folded}"
        );
    }
}
