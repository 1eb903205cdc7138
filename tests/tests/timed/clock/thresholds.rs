//! `-m` and `-M` limit the length of each interval, in microseconds.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use systemscope_tests::printed::output::per_mille;
use systemscope_tests::{Account, Seen, Turn, Watch, Workload, accounts_at_rest, patiently};

struct Naps {
    naps: Workload,
    seen: Seen,
    kernel: Account,
}

/// Runs sleeps of 200 us and some sleeps of `rest_ms` under offcputime.
fn naps(rest_ms: u32, arguments: &str) -> Naps {
    let mut naps = Workload::start("naps", &[2, 200, rest_ms]);
    let pid = naps.pid();
    let mut watch = Watch::offcputime(pid, arguments);
    let before = accounts_at_rest(pid)[&pid];
    watch.open();
    naps.go();
    naps.wait_done();
    let kernel = accounts_at_rest(pid)[&pid].since(before);
    Naps {
        seen: watch.close(),
        naps,
        kernel,
    }
}

#[test]
fn sleeps_of_200_us_vanish_under_a_millisecond() {
    let _turn = Turn::share();
    let Naps { naps, seen, .. } = naps(0, "-m 1000");
    let shown = seen.folded.under("nap").total();
    // On a busy machine some sleeps exceed 1 ms and are shown.
    let long = naps.told("long_naps");
    assert!(
        shown <= long,
        "{shown} ns shown of {} ns, of which {long} ns in long ones",
        naps.told("naps")
    );
}

#[test]
fn sleeps_of_200_us_are_all_there_under_100_us() {
    let _turn = Turn::share();
    patiently(assert_all_there);
}

fn assert_all_there() {
    let Naps { naps, seen, kernel } = naps(0, "-m 100");
    // Only waits for a CPU after a preemption are hidden. Each of them is shorter than the
    // threshold.
    let hidden = kernel.involuntary * 100_000;
    let clock = seen.clock("naps");
    let off_cpu = clock.blocked_ns + clock.runnable_ns;
    let shown = seen.folded.total();
    assert!(
        (off_cpu.saturating_sub(hidden)..=off_cpu).contains(&shown),
        "{shown} ns shown of {off_cpu} ns off CPU, {hidden} ns may be hidden"
    );
    assert_naps_are_shown(&naps, &seen, &kernel, hidden);
}

/// Checks the naps against the program's own measure, which includes the system calls and both
/// context switches. This surplus is at most the thread's running time.
#[track_caller]
fn assert_naps_are_shown(naps: &Workload, seen: &Seen, kernel: &Account, hidden: u64) {
    let shown = seen.folded.under("nap").total();
    let truth = naps.told("naps");
    let least = truth.saturating_sub(kernel.running_ns + hidden);
    assert!(
        (least..=truth).contains(&shown),
        "{shown} ns shown, {least} to {truth} ns of naps"
    );
}

#[test]
#[ignore = "measures twice, as the tests beside it do"]
fn what_a_threshold_hides_stays_in_the_clock() {
    let _turn = Turn::share();
    patiently(|| {
        let Naps { seen, kernel, .. } = naps(0, "-m 1000");
        let row = &seen.clocks[0];
        // The kernel counts more running time than the clock, never less, because it includes the
        // way out of idle.
        let least = seen.window_ns() - kernel.running_ns;
        let off_cpu = row.blocked_ns + row.runnable_ns;
        assert!(
            (per_mille(least, 990)..seen.window_ns()).contains(&off_cpu),
            "{row:?}, at least {least} ns off CPU"
        );
    });
}

#[test]
#[ignore = "the test of minimum and maximum covers this rule"]
fn intervals_above_the_maximum_are_left_out() {
    let _turn = Turn::share();
    let seen = patiently(|| {
        let Naps { naps, seen, kernel } = naps(50, "-M 20000");
        // A nap that the machine made longer than the maximum is not shown.
        assert_naps_are_shown(&naps, &seen, &kernel, naps.told("long_naps"));
        seen
    });
    // The thread may be preempted in `rest` before it sleeps. The sleeps exceed the maximum.
    assert_eq!(seen.folded.under("rest").marked("_[o]").total(), 0);
}

#[test]
fn intervals_between_minimum_and_maximum_are_kept() {
    let _turn = Turn::share();
    let Naps { naps, seen, .. } = patiently(|| {
        let measured = naps(50, "-m 20000 -M 10000000");
        let shown = measured.seen.folded.under("rest").total();
        let truth = measured.naps.told("rests");
        let least = truth.saturating_sub(measured.kernel.running_ns);
        assert!(
            (least..=truth).contains(&shown),
            "{shown} ns shown, {least} to {truth} ns of rest"
        );
        measured
    });
    let naps_shown = seen.folded.under("nap").total();
    assert!(
        naps_shown <= naps.told("long_naps"),
        "{naps_shown} ns of naps"
    );
}
