//! Share of a CPU that all processes of wallclock take while wallclock profiles a program.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use systemscope_tests::Workload;
use systemscope_tests::printed::output::median;
use systemscope_tests::printed::table::{Table, Verdict};
use systemscope_tests::programs::peers::Profiler;
use systemscope_tests::truth::statistics::cost_of;

use crate::figures::{BPF_AND_CPU_TIME, format_spread};

const ROUNDS: usize = 3;
const WINDOW: Duration = Duration::from_secs(6);
const MAX_PERCENT: f64 = 1.0;

/// Measures wallclock with a program that runs 30 % of the time: 5 ms of every 16.7 ms.
pub(crate) fn share_of_a_cpu(table: &mut Table) {
    let mut shares = Workload::start("shares", &[120, 16_667]);
    shares.go();
    let profiler = Profiler::ours("wallclock", "PID -d 60 -o FILE");
    let percent: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let cost = cost_of(&profiler, shares.pid(), || {
                let before = wallclocks_cpu_ns();
                sleep(WINDOW);
                wallclocks_cpu_ns() - before
            });
            (cost.run_ns() + cost.done) as f64 / WINDOW.as_nanos() as f64 * 100.0
        })
        .collect();
    let cells = [
        "% of a CPU, target runs 30 % of the time; BPF programs included",
        "wallclock and its two tools",
        &format_spread(&percent, 3),
        BPF_AND_CPU_TIME,
        &format!("less than {MAX_PERCENT}"),
    ];
    table.row(&cells, Verdict::of(median(percent) < MAX_PERCENT));
}

/// Returns the CPU time of wallclock and its two children, in ns.
fn wallclocks_cpu_ns() -> u64 {
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let its_own = processes.filter(|entry| {
        let comm = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        ["wallclock", "oncputime", "offcputime"].contains(&comm.trim())
    });
    let threads = its_own.flat_map(|entry| {
        let tasks = fs::read_dir(entry.path().join("task"));
        tasks.into_iter().flatten().flatten()
    });
    let running = threads.filter_map(|entry| {
        let schedstat = fs::read_to_string(entry.path().join("schedstat")).ok()?;
        schedstat.split(' ').next()?.parse::<u64>().ok()
    });
    running.sum()
}
