//! User stacks are the same whether they are taken when a thread leaves its CPU or, as
//! kernels since 6.15 let programs do where -m leaves short waits out, when it is back.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::thread::sleep;
use std::time::Duration;

use systemscope_tests::printed::output::per_mille;
use systemscope_tests::{Folded, Seen, Tool, Turn, Watch, Workload, patiently};

/// All that counts, and all that lasts longer than a millisecond.
const THRESHOLDS: [&str; 2] = ["-m 0", "-m 1000"];

const WORKERS: u64 = 3;

/// The first of the kernel's frames.
const SYSTEM_CALL: &str = "entry_SYSCALL_64_after_hwframe";

/// How long the workers are in their last wait, at least.
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
            // By the program's own measure, which includes the system calls.
            let truth = phases.told(&format!("{function}-{worker}"));
            assert!(
                (per_mille(truth, 950)..=truth).contains(&shown),
                "{arguments}: {shown} of {truth} ns in {function}{own}"
            );
        }
        // What waits there is part of it.
        let last = path(&own, &["work", SYSTEM_CALL]);
        assert!(
            u128::from(last) >= LAST_WAIT.as_nanos(),
            "{arguments}: {last} ns in the last wait{own}"
        );
    }
    assert_nothing_hidden(&seen);
}

/// Nanoseconds in stacks in which these functions call each other.
fn path(folded: &Folded, functions: &[&str]) -> u64 {
    folded.only(|line| line.has_path(functions)).total()
}

/// A missed switch may have cost a stack: the machine's doing.
#[track_caller]
fn assert_nothing_hidden(seen: &Seen) {
    assert_eq!(seen.lost["events"], 0, "{}", seen.stderr);
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
