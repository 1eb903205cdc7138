//! Time off the CPU in each waiting function, compared with the program's own measure. Each
//! thread's account, compared with the kernel's account.

use systemscope_tests::printed::phases::{self, Measured};
use systemscope_tests::printed::table::{Table, Verdict};
use systemscope_tests::programs::peers::Profiler;
use systemscope_tests::truth::wake_ups::Delays;
use systemscope_tests::{Account, ClockRow, Folded, Watch, Workload};

use crate::peers::{Peers, describe};

const WORKERS: u64 = 3;
const MAX_PERCENT: f64 = 1.0;

/// Measures threads that compute, sleep, wait for a lock and read a pipe in turn.
pub(crate) fn rows(table: &mut Table) {
    let phases = Workload::start("phases", &[4, WORKERS]);
    let others = [
        Profiler::libbpf_tools("offcputime", "-p PID"),
        Profiler::bpftrace_off_cpu(true),
    ];
    let peers = Peers::attach(others, phases.pid());
    let measured = phases::measure(phases, |pid| Watch::offcputime(pid, ""));
    let others = peers.stop();

    for (function, what) in [
        ("g", "sleep"),
        ("h", "wait for a lock"),
        ("i", "read a pipe"),
    ] {
        let truth: u64 = (0..WORKERS)
            .map(|worker| measured.phases.told(&format!("{function}-{worker}")))
            .sum();
        let shown = |folded: &Folded, ns: u64| {
            let seen = folded.under(function).total() * ns;
            let off = (seen as f64 / truth as f64 - 1.0) * 100.0;
            (off, format!("{:.1} ms, {off:+.2} %", seen as f64 / 1e6))
        };
        let (off, ours) = shown(&measured.seen.folded, 1);
        let said = describe(&others, |name, folded| {
            shown(folded, if name == "bpftrace" { 1 } else { 1000 }).1
        });
        let cells = [
            "time off CPU by function",
            &format!("{WORKERS} threads that {what}"),
            &format!("{:.1} ms", truth as f64 / 1e6),
            &ours,
            &format!("within {MAX_PERCENT} %"),
            &said,
        ];
        table.row(&cells, Verdict::of(off.abs() <= MAX_PERCENT));
    }
    accounts(table, &measured);
}

/// Checks that the three states of each thread add up to its life, and that they agree with the
/// kernel's accounts.
fn accounts(table: &mut Table, measured: &Measured) {
    let Measured {
        phases,
        seen,
        kernel,
        wake_ups,
        ..
    } = measured;
    let least = seen
        .clocks
        .iter()
        .map(|row| row.accounted_ns() as f64 * 100.0 / row.lifetime_ns() as f64)
        .fold(f64::INFINITY, f64::min);
    let cells = [
        "a thread's time running, runnable and blocked",
        &format!("{} threads", seen.clocks.len()),
        "100 % of its life in the window",
        &format!("{least:.3} % of the worst thread's"),
        "at least 99.5 %",
        "none tells",
    ];
    table.row(&cells, Verdict::of(least >= 99.5));

    // The differences are percentages of a thread's life in the window. The known differences of
    // the accounts are taken off.
    let delays = |tid: u32| wake_ups.get(&tid).copied().unwrap_or_default();
    let beyond = |more: u64, less: u64, known: u64| match more.checked_sub(less) {
        Some(difference) => difference.saturating_sub(known),
        None => less - more,
    };
    let worst = |off_ns: &dyn Fn(&ClockRow, &Account) -> u64| {
        let off = seen.clocks.iter().map(|row| {
            let off_ns = off_ns(row, &kernel[&row.tid]);
            off_ns as f64 * 100.0 / row.lifetime_ns() as f64
        });
        off.fold(0.0, f64::max)
    };
    let stolen = measured.stolen_ns as f64 * 100.0 / seen.window_ns() as f64;
    for (state, off) in [
        (
            "running",
            worst(&|row, account| {
                let known = delays(row.tid).preempting_ns;
                beyond(account.running_ns, row.running_ns, known)
            }),
        ),
        (
            "runnable",
            worst(&|row, account| {
                let Delays {
                    arriving_ns,
                    preempting_ns,
                    moved_asleep_ns,
                    ..
                } = delays(row.tid);
                beyond(
                    row.runnable_ns,
                    account.runnable_ns.saturating_sub(moved_asleep_ns),
                    arriving_ns + preempting_ns,
                )
            }),
        ),
    ] {
        let cells = [
            &format!("a thread's time {state}"),
            &format!("{} threads", seen.clocks.len()),
            "schedstat's, but for what wake-ups take",
            &format!("worst thread {off:.2} % of its life off"),
            &format!("within 1 % and the {stolen:.2} % that the hypervisor took"),
            "none tells",
        ];
        let cells = cells.map(|cell| cell as &str);
        table.row(&cells, Verdict::of_calm(stolen, off <= 1.0 + stolen));
    }

    // Each worker measures its computing with its own clock.
    let least = (0..WORKERS)
        .map(|worker| {
            let told = phases.told(&format!("f-{worker}"));
            let row = seen.clock(&format!("worker-{worker}"));
            (row.running_ns + row.runnable_ns) as f64 * 100.0 / told as f64
        })
        .fold(f64::INFINITY, f64::min);
    let cells = [
        "a thread's time running and runnable, from below",
        &format!("{WORKERS} threads that compute in between"),
        "what each measured where it does not wait",
        &format!("{least:.2} % of the worst thread's"),
        "at least 99.5 %",
        "none tells",
    ];
    table.row(&cells, Verdict::of(least >= 99.5));
}
