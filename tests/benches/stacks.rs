//! What exact user stacks cost: at the hook, by the kernel's own statistics of
//! BPF programs, and before the window. Run by `make bench`, as root.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs::{self, File};
use std::time::{Duration, Instant};

use systemscope_tests::output::{median, spread};
use systemscope_tests::statistics::{self, Statistics};
use systemscope_tests::{Tool, Workload, WorkloadBuilder};

/// Frames of the shallow and the deep workload: the difference is what frames
/// cost.
const SHALLOW: u64 = 5;
const DEEP: u64 = 35;
const ROUNDS: usize = 5;

fn main() {
    let statistics = Statistics::enable();
    hook(
        "off CPU, at sched_switch",
        "offcputime",
        "-m 10000000 --duration 2",
        "sleep",
        "sched_switch",
        // Each stop is a switch out, which walks, and one back in.
        2.0,
    );
    hook(
        "on CPU, at a sample",
        "oncputime",
        "-F 999 -C 1 --duration 2",
        "burn",
        "sample",
        1.0,
    );
    drop(statistics);
    tables();
}

/// Measures a program with and without user stacks, at two depths, in turn.
fn hook(title: &str, tool: &str, arguments: &str, doing: &str, program: &str, runs: f64) {
    println!("{title}: {tool} -p PID {arguments}");
    let mut none = Vec::new();
    let mut walks = [
        ("auto", Vec::new(), Vec::new()),
        ("fp", Vec::new(), Vec::new()),
    ];
    for _ in 0..ROUNDS {
        let shallow = workload(SHALLOW, doing);
        let deep = workload(DEEP, doing);
        let measure = |workload: &Workload, stacks: &str| {
            run_time(
                Tool::new(tool)
                    .pid(workload.pid())
                    .args(arguments)
                    .args(stacks),
                program,
            ) * runs
        };
        none.push(measure(&deep, "-K"));
        for (mode, at_shallow, at_deep) in &mut walks {
            let stacks = format!("-U --call-graph {mode}");
            at_shallow.push(measure(&shallow, &stacks));
            at_deep.push(measure(&deep, &stacks));
        }
    }
    let without = median(none);
    println!("  without user stacks {without:6.0} ns");
    for (mode, shallow, deep) in walks {
        let (least, most) = spread(&deep);
        let (shallow, deep) = (median(shallow), median(deep));
        // main, _start and two of libc, and the wrapper that sleeps.
        println!(
            "  --call-graph {mode:5} {:6.0} ns a stack of {DEEP} calls and what called them \
             (whole program {least:.0} to {most:.0}), {:4.0} ns a frame",
            deep - without,
            (deep - shallow) / (DEEP - SHALLOW) as f64
        );
    }
}

/// Alone on CPU 1, so that next to nothing else runs the program.
fn workload(frames: u64, doing: &str) -> Workload {
    WorkloadBuilder::new("deep")
        .without_frame_pointers()
        .flag("-fno-optimize-sibling-calls")
        .args(&[frames.to_string(), doing.to_owned()])
        .start_with(|_, command| {
            let mut pinned = std::process::Command::new("taskset");
            pinned.args(["-c", "1"]).arg(command.get_program());
            pinned.args(command.get_args());
            *command = pinned;
        })
}

/// Nanoseconds that one run of `program` takes while `tool` measures.
fn run_time(tool: Tool, program: &str) -> f64 {
    let running = tool.start();
    let begun = Instant::now();
    let mut first = (0, 0);
    let mut last = (0, 0);
    while begun.elapsed() < Duration::from_millis(1700) {
        std::thread::sleep(Duration::from_millis(100));
        let Some(now) = statistics_of(program) else {
            continue;
        };
        if begun.elapsed() < Duration::from_millis(600) {
            // Until the window is open for sure.
            first = now;
        }
        last = now;
    }
    running.finish_within(Duration::from_secs(20)).succeeded();
    (last.0 - first.0) as f64 / (last.1 - first.1).max(1) as f64
}

/// Nanoseconds and runs of a program that is loaded.
fn statistics_of(program: &str) -> Option<(u64, u64)> {
    let found = statistics::programs();
    let found = found.values().find(|found| found.name == program)?;
    Some((found.run_ns, found.runs))
}

/// How long the tables of libc and of the largest library here take.
fn tables() {
    println!("tables, warm cache, on one CPU");
    let largest = [
        "/usr/lib",
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib64",
        "/usr/bin",
    ]
    .iter()
    .filter_map(|folder| fs::read_dir(folder).ok())
    .flat_map(|entries| entries.flatten())
    .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
    .filter_map(|entry| Some((entry.metadata().ok()?.len(), entry.path())))
    .max();
    let libc = "/lib/x86_64-linux-gnu/libc.so.6".into();
    for path in [libc].into_iter().chain(largest.map(|(_, path)| path)) {
        let Ok(file) = File::open(&path) else {
            continue;
        };
        let mut times = Vec::new();
        let mut rows = 0;
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            let built = unwind::build(&file).expect("a table");
            times.push(begun.elapsed().as_secs_f64() * 1e3);
            rows = built.table.rows.len();
        }
        println!(
            "  {} ({} MiB, {rows} rows) {:.1} ms",
            path.display(),
            file.metadata().map_or(0, |data| data.len() >> 20),
            median(times)
        );
    }
}
