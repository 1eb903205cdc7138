//! What samples cost a program that does nothing but compute.

use std::process::Command;
use std::time::Instant;

use systemscope_tests::cpus_online;
use systemscope_tests::peers::{Profiler, beside};
use systemscope_tests::statistics::cost_of;
use systemscope_tests::table::{Table, Verdict};

use crate::figures::{BPF_AND_CPU_TIME, WALL_CLOCK, in_turn, shown};

const ROUNDS: usize = 9;
const OURS: &str = "oncputime -F 49";
const MOST_PERCENT: f64 = 0.5;
/// Of what the statistics tell, which hardly differs from round to round.
const ROUNDS_OF_STATISTICS: usize = 3;

/// Prime numbers a second, with a thread on each CPU, and what of the CPUs' time
/// the profilers had.
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
    let contenders: Vec<Profiler> = contenders.into_iter().flatten().collect();
    let with_nothing = std::iter::once(None).chain(contenders.iter().map(Some));
    let all = in_turn(ROUNDS, with_nothing, |profiler| {
        beside(*profiler, 1, primes)
    });
    let (nothing, watched) = all.split_first().expect("nothing attached");
    let what = "events/s of sysbench cpu, a thread on each CPU";
    let alone = shown(&nothing.values, 0);
    table.row(&[what, "nothing", &alone, WALL_CLOCK, ""], Verdict::Figure);
    for figures in watched {
        let name = figures.of.map_or("", |profiler| &profiler.name);
        let less = figures.percent_below(nothing);
        let measured = format!("{}, takes {} %", shown(&figures.values, 0), shown(&less, 2));
        table.row(&[what, name, &measured, WALL_CLOCK, ""], Verdict::Figure);
    }
    // What perf has the kernel do at a sample, nobody counts.
    let counted = contenders
        .iter()
        .filter(|profiler| !profiler.name.starts_with("perf"));
    share_of_the_cpus(table, counted);
}

/// What noise does not blur: the time of BPF programs, and of the profiler itself.
fn share_of_the_cpus<'a>(table: &mut Table, profilers: impl Iterator<Item = &'a Profiler>) {
    let all = in_turn(ROUNDS_OF_STATISTICS, profilers, |profiler| {
        let cost = cost_of(profiler, 1, || {
            let begun = Instant::now();
            primes();
            begun.elapsed().as_nanos() as f64 * cpus_online() as f64
        });
        (cost.run_ns() + cost.cpu_ns) as f64 / cost.done * 100.0
    });
    for figures in &all {
        let name = &figures.of.name;
        let (bound, verdict) = match name.as_str() {
            OURS => (
                format!("less than {MOST_PERCENT}"),
                Verdict::of(figures.median() < MOST_PERCENT),
            ),
            _ => (String::new(), Verdict::Figure),
        };
        let what = "% of the CPUs' time for samples of sysbench cpu";
        let measured = shown(&figures.values, 3);
        table.row(&[what, name, &measured, BPF_AND_CPU_TIME, &bound], verdict);
    }
}

fn primes() -> f64 {
    let threads = format!("--threads={}", cpus_online());
    let mut command = Command::new("sysbench");
    let output = command.args(["cpu", "--time=1", &threads, "run"]).output();
    let text = String::from_utf8_lossy(&output.expect("start sysbench").stdout).into_owned();
    let rate = text
        .lines()
        .find_map(|line| line.split_once("events per second:")?.1.trim().parse().ok());
    rate.unwrap_or_else(|| panic!("no events in:\n{text}"))
}
