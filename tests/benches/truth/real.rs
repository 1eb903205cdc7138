//! Real programs: complete user stacks, and times in the kernel's accounts.

use std::thread::sleep;
use std::time::Duration;

use systemscope_tests::printed::table::{Table, Verdict};
use systemscope_tests::printed::user_stacks::starts_a_thread;
use systemscope_tests::programs::peers::Profiler;
use systemscope_tests::{Folded, Seen, Watch, now_ns};

use crate::books::{Booked, Books, compare_with_schedstat};
use crate::peers::{Peers, describe};
use crate::programs::Program;

const HERTZ: u64 = 199;
const WINDOW: Duration = Duration::from_secs(4);
const LEAST_WHOLE: f64 = 99.0;

/// Adds the rows for a running program.
pub(crate) fn rows(table: &mut Table, program: &Program) {
    let pid = program.pid;
    let mut books = Books::open(pid);
    let mut on_cpu = Watch::oncputime(pid, &format!("-U -F {HERTZ}"));
    let mut off_cpu = Watch::offcputime(pid, "-U");
    Watch::open_together([&mut off_cpu, &mut on_cpu], WINDOW);
    let opens_in = off_cpu.started_ns().saturating_sub(now_ns());
    sleep(Duration::from_nanos(opens_in));
    books.begin();
    sleep(WINDOW);
    let booked = books.close();
    let (on_cpu, off_cpu) = (on_cpu.close(), off_cpu.close());

    let on_cpu_peers = Peers::attach(
        [
            Profiler::perf_record(HERTZ, "fp"),
            Profiler::perf_record(HERTZ, "dwarf"),
            Profiler::bpftrace_on_cpu(HERTZ, true),
        ],
        pid,
    );
    sleep(WINDOW / 2);
    let on_cpu_peers = on_cpu_peers.stop();
    let off_cpu_peers = Peers::attach(
        [
            Profiler::libbpf_tools("offcputime", "-p PID"),
            Profiler::bpftrace_off_cpu(true),
        ],
        pid,
    );
    sleep(WINDOW / 2);
    let off_cpu_peers = off_cpu_peers.stop();

    for (when, seen, peers) in [
        ("on CPU", &on_cpu, on_cpu_peers),
        ("off CPU", &off_cpu, off_cpu_peers),
    ] {
        let whole = whole_percent(&seen.folded);
        let figure = |folded: &Folded| {
            let (whole, frames) = (whole_percent(folded), frames(folded));
            format!("{whole:.1} %, {frames:.0} frames")
        };
        let cells = [
            &format!("user stacks from the thread's first function, {when}"),
            program.name,
            "100 %",
            &figure(&seen.folded),
            &format!("at least {LEAST_WHOLE} %"),
            &describe(&peers, |_, folded| figure(folded)),
        ];
        table.row(&cells, Verdict::of(whole >= LEAST_WHOLE));
    }
    compare_with_schedstat(table, program.name, &off_cpu, &booked);
    times(table, program, &on_cpu, &off_cpu, &booked);
}

/// Returns the share of complete stacks in the value of all stacks that have a frame, in percent.
fn whole_percent(folded: &Folded) -> f64 {
    let stacks = folded.only(|line| !line.frames.is_empty());
    let whole = stacks.only(starts_a_thread).total();
    whole as f64 * 100.0 / stacks.total().max(1) as f64
}

/// Returns the mean number of frames of a stack.
fn frames(folded: &Folded) -> f64 {
    let frames = folded
        .lines
        .iter()
        .map(|line| line.frames.len() as u64 * line.value);
    frames.sum::<u64>() as f64 / folded.total().max(1) as f64
}

fn times(table: &mut Table, program: &Program, on_cpu: &Seen, off_cpu: &Seen, booked: &Booked) {
    let booked_ns = booked.running_ns;
    let percent = |ns: u64| (ns as f64 / booked_ns as f64 - 1.0) * 100.0;
    let stolen = booked.stolen_ns as f64 * 100.0 / booked_ns as f64;
    // The different times of reading explain 2 %.
    let allowed = 2.0 + stolen;
    let samples = on_cpu.folded.total();
    let sampled = samples * 1_000_000_000 / HERTZ;
    let chance = 300.0 / (samples.max(1) as f64).sqrt();
    let cells = [
        "time on CPU by samples",
        program.name,
        &format!("{:.0} ms by schedstat", booked_ns as f64 / 1e6),
        &format!("{:.0} ms, {:+.1} %", sampled as f64 / 1e6, percent(sampled)),
        &format!("within 2 %, {stolen:.2} % stolen, {chance:.1} % of chance"),
        "",
    ];
    table.row(
        &cells,
        Verdict::of_calm(stolen, percent(sampled).abs() <= allowed + chance),
    );

    let worst = off_cpu
        .clocks
        .iter()
        .map(|row| row.accounted_ns() as f64 * 100.0 / row.lifetime_ns().max(1) as f64)
        .fold(f64::INFINITY, f64::min);
    let cells = [
        "a thread's time running, runnable and blocked",
        program.name,
        "100 % of its life in the window",
        &format!(
            "{worst:.3} % of the worst of {} threads",
            off_cpu.clocks.len()
        ),
        "at least 99.5 %",
        "none tells",
    ];
    table.row(&cells, Verdict::of(worst >= 99.5));
}
