//! Share of CPU time, and time off the CPU, by Python function. Both are compared with the
//! program's own measure.

use std::process::Command;

use systemscope_tests::printed::folded::bare;
use systemscope_tests::printed::table::{Table, Verdict};
use systemscope_tests::programs::peers::Profiler;
use systemscope_tests::programs::pythons::{Python, some_pythons};
use systemscope_tests::programs::sources::source;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::truth::account::stolen_ns;
use systemscope_tests::{Folded, Watch, Workload};

use crate::peers::{Peers, describe};
use crate::programs::RemovedWhenDropped;
use crate::shares::{Error, SYSTEMATIC};

const SECONDS: &str = "4";
const HERTZ: u64 = 999;
/// Time that a sample of py-spy stands for, in ns.
const PY_SPY_NS: u64 = 10_000_000;
/// Functions that compute.
const COMPUTE: [&str; 3] = ["loop", "sort", "compress"];
/// Functions that wait, and the activity of their threads there.
const WAIT: [(&str, &str); 4] = [
    ("doze", "sleeps"),
    ("acquire", "waits for a lock"),
    ("take", "waits for a queue"),
    ("read_pipe", "reads a pipe"),
];
const MAX_PERCENT: f64 = 1.0;
/// First minor version with `-X perf`, which gives perf the names of Python functions.
const TELLS_PERF: u64 = 12;

/// Run of `phases.py` beside another profiler. The profiler may stop the program at each sample, so
/// the run has its own measurements.
struct Beside {
    program: Workload,
    peers: Vec<(String, Option<Folded>)>,
}

/// Time off the CPU in some functions, by the program's measure and by a profiler.
struct OffCpu {
    told_ns: u64,
    seen_ns: u64,
}

/// Measures two threads that compute and four threads that wait, in some versions of Python.
pub(crate) fn rows(table: &mut Table) {
    for python in some_pythons() {
        let mut program = start(&python, &[]);
        let mut on_cpu = Watch::oncputime(program.pid(), &format!("-F {HERTZ}"));
        let mut off_cpu = Watch::offcputime(program.pid(), "");
        on_cpu.open();
        off_cpu.open();
        let stolen = stolen_ns();
        program.go();
        program.wait_done();
        let stolen = stolen_ns() - stolen;
        let (on_cpu, off_cpu) = (on_cpu.close().folded, off_cpu.close().folded);
        share_row(table, &python, &program, &on_cpu, stolen);
        waits_rows(table, &python, &program, &off_cpu);
        lock_row(table, &program, &off_cpu, stolen);
    }
}

fn share_row(
    table: &mut Table,
    python: &Python,
    program: &Workload,
    on_cpu: &Folded,
    stolen_ns: u64,
) {
    let by_py_spy = ["", "--native", "--gil"].map(|flags| {
        let beside = Beside::run(python, &[], Some(Profiler::py_spy(flags)));
        beside.describe(error_in_short)
    });
    let by_perf = by_perf(python, program.told("minor"));
    let mut truth: Vec<String> = COMPUTE
        .iter()
        .map(|function| format!("{function} {:.1} %", share_told(program, function)))
        .collect();
    truth.push(format!("elsewhere {:.1} %", share_elsewhere(program)));
    let error = error(on_cpu, program);
    let stolen = stolen_ns as f64 * 100.0 / program.told("cpu") as f64;
    let most = error.chance + SYSTEMATIC;
    let cells = [
        "share of CPU time by Python function",
        &format!("2 threads that compute, {}", name(program)),
        &truth.join(", "),
        &error.text(),
        &format!("within {most:.1} points and the {stolen:.2} % that the hypervisor took"),
        &[by_py_spy.join("; "), by_perf].join("; "),
    ];
    table.row(
        &cells,
        Verdict::of_calm(stolen, error.points <= most + stolen),
    );
}

fn waits_rows(table: &mut Table, python: &Python, program: &Workload, off_cpu: &Folded) {
    let beside = Beside::run(python, &[], Some(Profiler::py_spy("--idle")));
    for (function, what) in WAIT {
        let seen = OffCpu::of(&[function], program, off_cpu, 1);
        let said = beside.describe(|folded, program| {
            let seen = OffCpu::of(&[function], program, folded, PY_SPY_NS);
            format!("{:+.1} %", seen.percent())
        });
        let cells = [
            "time off CPU by Python function",
            &format!("a thread that {what}, {}", name(program)),
            &milliseconds(seen.told_ns),
            &seen.text(),
            &format!("within {MAX_PERCENT} %"),
            &said,
        ];
        table.row(&cells, Verdict::of(seen.percent().abs() <= MAX_PERCENT));
    }
}

/// Checks the computing threads. They are off the CPU while another thread has the interpreter's
/// lock or the CPU.
fn lock_row(table: &mut Table, program: &Workload, off_cpu: &Folded, stolen_ns: u64) {
    let seen = OffCpu::of(&COMPUTE, program, off_cpu, 1);
    let stolen = stolen_ns as f64 * 100.0 / seen.told_ns as f64;
    let holds = seen.percent().abs() <= MAX_PERCENT + stolen;
    let cells = [
        "time off CPU by Python function",
        &format!(
            "2 threads that compute wait for the interpreter's lock, {}",
            name(program)
        ),
        &milliseconds(seen.told_ns),
        &seen.text(),
        &format!("within {MAX_PERCENT} % and the {stolen:.2} % that the hypervisor took"),
        "none tells it from running",
    ];
    table.row(&cells, Verdict::of_calm(stolen, holds));
}

fn start(python: &Python, flags: &[&str]) -> Workload {
    let mut command = Command::new(&python.path);
    command.args(flags).arg(source("phases.py")).arg(SECONDS);
    Workload::run(command, python.path.clone(), scratch())
}

impl Beside {
    fn run(python: &Python, flags: &[&str], profiler: Option<Profiler>) -> Beside {
        let mut program = start(python, flags);
        let _map = RemovedWhenDropped::map_of(program.pid());
        let peers = Peers::attach([profiler], program.pid());
        program.go();
        program.wait_done();
        let peers = peers.stop();
        Beside { program, peers }
    }

    fn describe(&self, figure: impl Fn(&Folded, &Workload) -> String) -> String {
        describe(&self.peers, |_, folded| figure(folded, &self.program))
    }
}

/// Measures perf. It knows Python functions if the interpreter generates code for each function.
fn by_perf(python: &Python, minor: u64) -> String {
    if minor < TELLS_PERF {
        return format!("perf: no -X perf before Python 3.{TELLS_PERF}");
    }
    let said = ["fp", "dwarf"].map(|call_graph| {
        let perf = Profiler::perf_record(HERTZ, call_graph);
        Beside::run(python, &["-X", "perf"], perf).describe(error_in_short)
    });
    said.join("; ")
}

fn error_in_short(folded: &Folded, program: &Workload) -> String {
    let error = error(folded, program);
    format!("{:.1} points (chance: {:.1})", error.points, error.chance)
}

/// Returns the error of the shares of all samples of the process.
fn error(folded: &Folded, program: &Workload) -> Error {
    let functions = COMPUTE.map(|function| {
        let hits = within(folded, function);
        (hits, share_told(program, function))
    });
    let hits: u64 = functions.iter().map(|(hits, _)| hits).sum();
    let elsewhere = folded.total().saturating_sub(hits);
    let elsewhere = (elsewhere, share_elsewhere(program));
    Error::of(&[&functions[..], &[elsewhere]].concat())
}

/// Returns a function's share of the process's CPU time, in percent.
fn share_told(program: &Workload, function: &str) -> f64 {
    program.told(&format!("on-{function}")) as f64 * 100.0 / program.told("cpu") as f64
}

fn share_elsewhere(program: &Workload) -> f64 {
    let shares = COMPUTE.map(|function| share_told(program, function));
    100.0 - shares.iter().sum::<f64>()
}

/// Returns the value of the stacks that contain a function of `phases.py`.
fn within(folded: &Folded, function: &str) -> u64 {
    let is_function = |frame: &String| is_called(bare(frame), function);
    folded
        .only(|line| line.frames.iter().any(is_function))
        .total()
}

/// Returns whether a frame has the name that py-spy, the tools or perf give to a function.
fn is_called(frame: &str, function: &str) -> bool {
    let perf_name = frame
        .strip_prefix("py::")
        .and_then(|rest| rest.split(':').next());
    frame == function
        || frame.strip_prefix("phases.py:") == Some(function)
        || perf_name == Some(function)
}

impl OffCpu {
    fn of(functions: &[&str], program: &Workload, folded: &Folded, ns: u64) -> OffCpu {
        let told = functions
            .iter()
            .map(|name| program.told(&format!("off-{name}")));
        let seen = functions.iter().map(|name| within(folded, name) * ns);
        OffCpu {
            told_ns: told.sum(),
            seen_ns: seen.sum(),
        }
    }

    fn percent(&self) -> f64 {
        (self.seen_ns as f64 / self.told_ns as f64 - 1.0) * 100.0
    }

    fn text(&self) -> String {
        format!("{}, {:+.2} %", milliseconds(self.seen_ns), self.percent())
    }
}

fn milliseconds(ns: u64) -> String {
    format!("{:.1} ms", ns as f64 / 1e6)
}

fn name(program: &Workload) -> String {
    format!("Python 3.{}", program.told("minor"))
}
