//! -m and -M look at each interval in real microseconds.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use systemscope_tests::output::per_mille;
use systemscope_tests::{Account, Seen, Turn, Watch, Workload, accounts_at_rest, patiently};

struct Naps {
    naps: Workload,
    seen: Seen,
    kernel: Account,
}

/// Sleeps of 200 us, and now and then one of `rest_ms`, under offcputime.
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
    let _turn = Turn::take();
    let Naps { naps, seen, .. } = naps(0, "-m 1000");
    let shown = seen.folded.under("nap").total();
    // On a busy machine some sleeps last longer, and belong there.
    let long = naps.told("long_naps");
    assert!(
        shown <= long,
        "{shown} ns shown of {} ns, of which {long} ns in long ones",
        naps.told("naps")
    );
}

#[test]
fn sleeps_of_200_us_are_all_there_under_100_us() {
    let _turn = Turn::take();
    patiently(assert_all_there);
}

fn assert_all_there() {
    let Naps { seen, kernel, .. } = naps(0, "-m 100");
    let off_cpu = seen.window_ns() - kernel.running_ns;
    let shown = seen.folded.total();
    assert!(
        shown >= per_mille(off_cpu, 990),
        "{shown} ns shown of {off_cpu} ns off CPU"
    );
    assert!(
        shown <= per_mille(off_cpu, 1010),
        "{shown} ns shown of {off_cpu} ns off CPU"
    );
    let under = seen.folded.under("nap").total();
    assert!(under > 1_000_000_000, "{under} ns under nap");
}

#[test]
fn what_a_threshold_hides_stays_in_the_clock() {
    let _turn = Turn::take();
    patiently(|| {
        let Naps { seen, kernel, .. } = naps(0, "-m 1000");
        let row = &seen.clocks[0];
        let off_cpu = seen.window_ns() - kernel.running_ns;
        assert!(
            row.blocked_ns + row.runnable_ns >= per_mille(off_cpu, 990),
            "{row:?}, {off_cpu} ns off CPU"
        );
    });
}

#[test]
fn intervals_above_the_maximum_are_left_out() {
    let _turn = Turn::take();
    let seen = patiently(|| {
        let Naps { naps, seen, .. } = naps(50, "-M 20000");
        let shown = seen.folded.under("nap").total();
        // What a nap takes includes the system call and both context switches.
        let truth = naps.told("naps");
        assert!(
            shown >= per_mille(truth, 850),
            "{shown} ns of {truth} ns of naps"
        );
        seen
    });
    // It may be preempted in there before it sleeps; the sleeps are too long.
    assert_eq!(seen.folded.under("rest").marked("_[o]").total(), 0);
}

#[test]
fn intervals_between_minimum_and_maximum_are_kept() {
    let _turn = Turn::take();
    let Naps { naps, seen, .. } = patiently(|| {
        let measured = naps(50, "-m 20000 -M 10000000");
        let shown = measured.seen.folded.under("rest").total();
        let truth = measured.naps.told("rests");
        assert!(
            shown >= per_mille(truth, 990),
            "{shown} ns of {truth} ns of rest"
        );
        measured
    });
    let naps_shown = seen.folded.under("nap").total();
    assert!(
        naps_shown <= naps.told("long_naps"),
        "{naps_shown} ns of naps"
    );
}
