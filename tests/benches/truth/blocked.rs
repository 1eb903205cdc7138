//! Off CPU: the time in each function that waits, against the time that a
//! program measured there; and each thread's account, against the kernel's.

use systemscope_tests::peers::Profiler;
use systemscope_tests::phases::{self, Measured};
use systemscope_tests::table::{Table, Verdict};
use systemscope_tests::{Account, ClockRow, Folded, Watch, Workload};

use crate::peers::{Peers, say};

const WORKERS: u64 = 3;
const MOST_PERCENT: f64 = 1.0;

/// Threads that compute, sleep, wait for a lock and read a pipe in turn.
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
        let said = say(&others, |name, folded| {
            shown(folded, if name == "bpftrace" { 1 } else { 1000 }).1
        });
        let cells = [
            "time off CPU by function",
            &format!("{WORKERS} threads that {what}"),
            &format!("{:.1} ms", truth as f64 / 1e6),
            &ours,
            &format!("within {MOST_PERCENT} %"),
            &said,
        ];
        table.row(&cells, Verdict::of(off.abs() <= MOST_PERCENT));
    }
    accounts(table, &measured);
}

/// Every thread's three states add up to its life, and are those of the kernel.
fn accounts(table: &mut Table, measured: &Measured) {
    let Measured { seen, kernel, .. } = measured;
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

    // Of a thread's life in the window.
    let worst = |ours: fn(&ClockRow) -> u64, theirs: fn(&Account) -> u64| {
        let off = seen.clocks.iter().map(|row| {
            let difference = ours(row).abs_diff(theirs(&kernel[&row.tid]));
            difference as f64 * 100.0 / row.lifetime_ns() as f64
        });
        off.fold(0.0, f64::max)
    };
    let stolen = measured.stolen_ns as f64 * 100.0 / seen.window_ns() as f64;
    for (state, off) in [
        (
            "running",
            worst(|row| row.running_ns, |account| account.running_ns),
        ),
        (
            "runnable",
            worst(|row| row.runnable_ns, |account| account.runnable_ns),
        ),
    ] {
        let cells = [
            &format!("a thread's time {state}"),
            &format!("{} threads", seen.clocks.len()),
            "schedstat's",
            &format!("worst thread {off:.2} % of its life off"),
            &format!("within 1 % and the {stolen:.2} % that the hypervisor took"),
            "none tells",
        ];
        let cells = cells.map(|cell| cell as &str);
        table.row(&cells, Verdict::of_calm(stolen, off <= 1.0 + stolen));
    }
}
