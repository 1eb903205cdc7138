//! CPU time of the tools themselves while many short processes come and go.

use std::time::{Duration, Instant};

use systemscope_tests::cpus_online;
use systemscope_tests::printed::table::{Table, Verdict};
use systemscope_tests::programs::compiling::compile_for;
use systemscope_tests::programs::peers::Profiler;

use crate::figures::{CPU_TIME, format_spread, in_turn};

const ROUNDS: usize = 3;
const BUSY: Duration = Duration::from_secs(6);
/// Largest share of the time of all CPUs, in percent.
const MAX_PERCENT: f64 = 0.5;

/// Measures machine-wide tools while a C compiler runs over and over.
pub(crate) fn own_time(table: &mut Table) {
    let contenders = [
        Some(Profiler::ours("oncputime", "-F 49")),
        Some(Profiler::ours("offcputime", "-m 1000")),
        Profiler::perf("record -q -e cpu-clock -F 49 -g -a -o FILE"),
    ];
    let all = in_turn(ROUNDS, contenders.into_iter().flatten(), |profiler| {
        let attached = profiler.attach(std::process::id());
        let (begun, before) = (Instant::now(), attached.cpu_ns());
        compile_for(BUSY);
        let taken = attached.cpu_ns() - before;
        let passed = begun.elapsed().as_nanos() as f64 * cpus_online() as f64;
        attached.stop();
        taken as f64 / passed * 100.0
    });
    for figures in &all {
        let name = &figures.subject.name;
        let (bound, verdict) = if name.starts_with("perf") {
            (String::new(), Verdict::Figure)
        } else {
            (
                format!("at most {MAX_PERCENT}"),
                Verdict::of(figures.median() <= MAX_PERCENT),
            )
        };
        let what = "% of the CPUs' time for the tool itself, machine-wide while cc runs";
        let measured = format_spread(&figures.values, 2);
        table.row(&[what, name, &measured, CPU_TIME, &bound], verdict);
    }
}
