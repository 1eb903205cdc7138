//! A wait for a CPU is runnable time, not blocked time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use systemscope_tests::printed::output::{assert_close, per_mille};
use systemscope_tests::{Tool, Turn, Watch, Workload, accounts_at_rest, cpus_online, patiently};

#[test]
fn more_busy_threads_than_cpus_wait_as_runnable() {
    let _turn = Turn::share();
    patiently(assert_waits_are_runnable);
}

fn assert_waits_are_runnable() {
    let mut spinners = Workload::start("spinners", &[2 * cpus_online() + 1, 3]);
    let pid = spinners.pid();
    let mut watch = Watch::offcputime(pid, "");
    let before = accounts_at_rest(pid);
    watch.open();
    spinners.go();
    spinners.wait_done();
    let after = accounts_at_rest(pid);
    let seen = watch.close();

    for row in seen.clocks.iter().filter(|row| row.comm == "spinner") {
        let kernel = after[&row.tid].since(before[&row.tid]);
        assert!(
            kernel.runnable_ns > seen.window_ns() / 4,
            "the threads did not have to wait: {kernel:?}"
        );
        assert_close(
            "runnable",
            row.runnable_ns,
            kernel.runnable_ns,
            per_mille(kernel.runnable_ns, 30),
        );
        let stacks = seen.folded.of_thread(row.tid);
        let waiting = stacks.under("spin");
        assert_eq!(
            waiting.marked("_[o]").total(),
            0,
            "spin never blocks: {waiting:#?}"
        );
        assert_close(
            "_[r] in spin",
            waiting.total(),
            kernel.runnable_ns,
            per_mille(kernel.runnable_ns, 30),
        );
        let blocked = stacks.marked("_[o]").total();
        // Intervals below the threshold of 1 us are missing.
        assert_close("_[o]", blocked, row.blocked_ns, 1000 * row.voluntary);
    }
}

#[test]
fn without_states_the_value_is_all_time_off_cpu() {
    let _turn = Turn::share();
    patiently(assert_all_time_off_cpu);
}

fn assert_all_time_off_cpu() {
    let threads = 2 * cpus_online() as u64;
    let mut spinners = Workload::start("spinners", &[threads, 30]);
    spinners.go();
    let folded = Tool::new("offcputime").pid(spinners.pid()).folded(2.0);
    assert!(
        folded
            .frames()
            .all(|frame| !frame.ends_with("_[r]") && !frame.ends_with("_[o]")),
        "{folded:#?}"
    );
    // There are twice as many threads as CPUs, so at any time at least half of the threads have no
    // CPU. Intervals below the threshold of 1 us and fractions of a microsecond are missing.
    let off_cpu = folded.under("spin").total();
    let least = threads * 2_000_000 / 2;
    assert!(
        off_cpu >= per_mille(least, 990),
        "{off_cpu} us of at least {least} us"
    );
    assert!(
        off_cpu <= threads * 2_000_000,
        "{off_cpu} us of {threads} threads in 2 s"
    );
}
