//! Samples on the CPU of each process of a busy machine, including the tools, compared with the
//! process's CPU time.

use std::time::Duration;

use systemscope_tests::printed::table::{Table, Verdict};
use systemscope_tests::programs::compiling::{COMPILERS, compile_for};
use systemscope_tests::programs::peers::Profiler;
use systemscope_tests::truth::account::{process_ns, stolen_ns};
use systemscope_tests::{Line, Tool, Watch};

const BUSY: Duration = Duration::from_secs(15);
/// Uncertainty of a process's CPU time, in ns. The kernel reports the time in ticks, and in two
/// parts.
const UNSURE_NS: u64 = 20_000_000;

/// Measures while compilers come and go under oncputime and offcputime.
pub(crate) fn rows(table: &mut Table) {
    for hertz in [49, 199] {
        measure(table, hertz);
    }
}

fn measure(table: &mut Table, hertz: u64) {
    let oncputime = Tool::new("oncputime").arg("-F").arg(hertz.to_string());
    let mut watch = Watch::apart_samples(oncputime);
    let beside = Profiler::ours("offcputime", "-m 1000").attach(std::process::id());
    let pids = [watch.pid(), beside.pid()];
    let read = || pids.map(|pid| process_ns(pid).expect("a tool that runs"));

    watch.open();
    let (before, stolen) = (read(), stolen_ns());
    let compiled = compile_for(BUSY);
    let (after, stolen) = (read(), stolen_ns() - stolen);
    let (seen, _) = watch.close_however_big();
    beside.stop();

    let mut row = |name: &str, cpu_ns: u64, is_its: &dyn Fn(&Line) -> bool| {
        let samples = seen.folded.only(is_its).total();
        let per_second = hertz as f64 / 1e9;
        let expected = cpu_ns as f64 * per_second;
        // Chance explains up to three standard deviations of the count.
        let chance = 3.0 * expected.sqrt() + (UNSURE_NS + stolen) as f64 * per_second + 1.0;
        let cells = [
            "samples of a process, machine-wide",
            &format!("{name}, while compilers run, {hertz} Hz"),
            &format!(
                "{:.3} s of CPU time, {expected:.1} samples",
                cpu_ns as f64 / 1e9
            ),
            &format!("{samples} samples"),
            &format!("within {chance:.1}, by chance"),
            "",
        ];
        let holds = (samples as f64 - expected).abs() <= chance;
        table.row(&cells, Verdict::of(holds));
    };
    let names = ["oncputime itself", "offcputime -m 1000 beside it"];
    for (turn, name) in names.into_iter().enumerate() {
        let is_its = |line: &Line| line.thread.is_some_and(|(pid, _)| pid == pids[turn]);
        row(name, after[turn] - before[turn], &is_its);
    }
    let compiles = |line: &Line| COMPILERS.contains(&line.comm.as_str());
    let name = format!("{} runs of cc", compiled.times);
    row(&name, compiled.cpu_ns, &compiles);
}
