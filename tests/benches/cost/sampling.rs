//! What samples cost a program that does nothing but compute.

use std::process::Command;

use systemscope_tests::cpus_online;
use systemscope_tests::output::median;
use systemscope_tests::peers::{Profiler, beside};
use systemscope_tests::table::{Table, Verdict};

use crate::figures::{in_turn, shown};

const ROUNDS: usize = 9;
const OURS: &str = "oncputime -F 49";
const MOST_PERCENT: f64 = 0.5;

/// Prime numbers a second, with a thread on each CPU.
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
    table.row(
        &[what, "nothing", &shown(&nothing.values, 0), ""],
        Verdict::Figure,
    );
    for figures in watched {
        let name = figures.of.as_ref().map_or("", |profiler| &profiler.name);
        let less = figures.percent_below(nothing);
        let measured = format!("{}, takes {} %", shown(&figures.values, 0), shown(&less, 2));
        let (bound, verdict) = if name == OURS {
            let holds = median(less) < MOST_PERCENT;
            (
                format!("takes less than {MOST_PERCENT} %"),
                Verdict::of(holds),
            )
        } else {
            (String::new(), Verdict::Figure)
        };
        table.row(&[what, name, &measured, &bound], verdict);
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
