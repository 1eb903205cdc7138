//! Cost of samples for a program that only computes.

use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use systemscope_tests::printed::table::{Table, Verdict};
use systemscope_tests::programs::peers::{Profiler, beside};
use systemscope_tests::truth::statistics::cost_of;
use systemscope_tests::{Running, cpus_online};

use crate::figures::{BPF_AND_CPU_TIME, WALL_CLOCK, format_spread, in_turn};

const ROUNDS: usize = 9;
const OURS: &str = "oncputime -p PID -F 49";
const MAX_PERCENT: f64 = 0.5;
/// Rounds for values from the statistics, which hardly differ between rounds.
const ROUNDS_OF_STATISTICS: usize = 3;
const WINDOW: Duration = Duration::from_secs(3);

/// Measures the prime numbers a second that a thread on each CPU finds, and the share of CPU time
/// that the profilers take.
pub(crate) fn throughput(table: &mut Table) {
    let contenders = [
        Some(Profiler::ours("oncputime", "-F 49")),
        Some(Profiler::ours("oncputime", "-F 999")),
        Profiler::bpftrace_on_cpu(49, false),
        Profiler::bpftrace_on_cpu(999, false),
        Profiler::perf("record -q -e cpu-clock -F 49 -g -a -o FILE"),
        Profiler::perf("record -q -e cpu-clock -F 999 -g -a -o FILE"),
        Profiler::perf("record -q -e cpu-clock -F 999 --call-graph dwarf -a -o FILE"),
    ];
    let with_nothing = std::iter::once(None).chain(contenders.into_iter().flatten().map(Some));
    let all = in_turn(ROUNDS, with_nothing, |profiler| {
        beside(profiler.as_ref(), 1, primes)
    });
    let (nothing, watched) = all.split_first().expect("nothing attached");
    let what = "events/s of sysbench cpu, a thread on each CPU";
    let alone = format_spread(&nothing.values, 0);
    table.row(&[what, "nothing", &alone, WALL_CLOCK, ""], Verdict::Figure);
    for figures in watched {
        let name = figures
            .subject
            .as_ref()
            .map_or("", |profiler| &profiler.name);
        let less = figures.percent_below(nothing);
        let measured = format!(
            "{}, takes {} %",
            format_spread(&figures.values, 0),
            format_spread(&less, 2)
        );
        table.row(&[what, name, &measured, WALL_CLOCK, ""], Verdict::Figure);
    }
    share_of_the_cpus(table);
}

/// Measures the part that noise does not blur: the time of BPF programs, and the profiler's own
/// time once it knows the program. The target is a single program, because the cost of a
/// machine-wide profiler depends on all other programs that start. The kernel does not account for
/// its work at a sample of perf.
fn share_of_the_cpus(table: &mut Table) {
    let contenders = [
        Some(Profiler::ours("oncputime", "-p PID -F 49")),
        Some(Profiler::ours("oncputime", "-p PID -F 999")),
        Profiler::bpftrace_on_cpu(49, true),
        Profiler::bpftrace_on_cpu(999, true),
        Some(Profiler::ours("oncputime", "-F 49")),
    ];
    let sysbench = Running::spawn(sysbench(600), true);
    let contenders = contenders.into_iter().flatten();
    let all = in_turn(ROUNDS_OF_STATISTICS, contenders, |profiler| {
        let cost = cost_of(profiler, sysbench.pid(), || {
            let begun = Instant::now();
            sleep(WINDOW);
            begun.elapsed().as_nanos() as f64 * cpus_online() as f64
        });
        (cost.run_ns() + cost.cpu_ns) as f64 / cost.done * 100.0
    });
    for figures in &all {
        let name = &figures.subject.name;
        let (bound, verdict) = match name.as_str() {
            OURS => (
                format!("less than {MAX_PERCENT}"),
                Verdict::of(figures.median() < MAX_PERCENT),
            ),
            _ => (String::new(), Verdict::Figure),
        };
        let what = "% of the CPUs' time for samples of sysbench cpu";
        let measured = format_spread(&figures.values, 3);
        table.row(&[what, name, &measured, BPF_AND_CPU_TIME, &bound], verdict);
    }
}

fn primes() -> f64 {
    let output = sysbench(1).output().expect("start sysbench");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rate = text
        .lines()
        .find_map(|line| line.split_once("events per second:")?.1.trim().parse().ok());
    rate.unwrap_or_else(|| panic!("no events in:\n{text}"))
}

fn sysbench(seconds: u32) -> Command {
    let mut command = Command::new("sysbench");
    command.args(["cpu", &format!("--time={seconds}")]);
    command.args([&format!("--threads={}", cpus_online()), "run"]);
    command
}
