//! Cost that tools add to a context switch, measured with perf's benchmarks.

use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use systemscope_tests::printed::output::median;
use systemscope_tests::printed::table::{Table, Verdict};
use systemscope_tests::programs::peers::{Profiler, beside};
use systemscope_tests::{Running, cpus_online};

use crate::figures::{Figures, WALL_CLOCK, format_spread, in_turn, user_stacks_can_wait};

const ROUNDS: usize = 5;
/// Number of passes that take 1.5 s without a tool.
const PASSES: u64 = 100_000;
const MESSAGES: u64 = 300;

type Measured = Vec<Figures<Option<Profiler>>>;

/// Measures two processes that pass a byte back and forth on one CPU, with two switches a pass.
pub(crate) fn pipe(table: &mut Table) {
    let all = in_turn(ROUNDS, everything(), |profiler| {
        // The benchmark is no profiler's target.
        let benchmark = || perf_bench(&format!("pipe -l {PASSES}"), true);
        beside(profiler.as_ref(), 1, benchmark) * 1e9 / (2 * PASSES) as f64
    });
    let long_waits = if user_stacks_can_wait() { 0.12 } else { 0.3 };
    let most = [("offcputime", 0.35), ("offcputime -m 1000", long_waits)];
    rows(table, "ns a switch, whole machine", &all, &most);
}

/// Measures two threads of one watched process that pass a byte back and forth.
pub(crate) fn pipe_watched(table: &mut Table) {
    let contenders = [
        None,
        Some(Profiler::ours("offcputime", "-p PID -m 1000")),
        Profiler::libbpf_tools("offcputime", "-p PID -m 1000"),
        Some(Profiler::ours("offcputime", "-p PID")),
        Profiler::libbpf_tools("offcputime", "-p PID"),
        Profiler::bpftrace_off_cpu(true),
        Some(Profiler::ours("offwaketime", "-p PID")),
        Some(Profiler::ours("cpudist", "-p PID")),
        Some(Profiler::ours("oncputime", "-p PID -F 49")),
    ];
    let contenders = installed(contenders);
    let all = in_turn(ROUNDS, contenders, |profiler| {
        let benchmark = Stopped::start(&format!("pipe -T -l {PASSES}"));
        let seconds = beside(profiler.as_ref(), benchmark.pid(), || benchmark.run());
        seconds * 1e9 / (2 * PASSES) as f64
    });
    rows(table, "ns a switch, watched with -p", &all, &[]);
}

/// Measures hackbench: groups of processes that send each other messages.
pub(crate) fn messaging(table: &mut Table) {
    let all = in_turn(ROUNDS, everything(), |profiler| {
        let benchmark = || perf_bench(&format!("messaging -g 2 -l {MESSAGES}"), false);
        beside(profiler.as_ref(), 1, benchmark) * 1e3
    });
    rows(
        table,
        "ms of hackbench, 80 processes, whole machine",
        &all,
        &[],
    );
}

/// Returns `None` for no profiler, and the machine-wide profilers.
fn everything() -> Vec<Option<Profiler>> {
    installed([
        None,
        Some(Profiler::ours("offcputime", "")),
        Profiler::libbpf_tools("offcputime", ""),
        Profiler::bpftrace_off_cpu(false),
        Profiler::perf("sched record -q -o FILE"),
        Some(Profiler::ours("offcputime", "-m 1000")),
        Profiler::libbpf_tools("offcputime", "-m 1000"),
        Some(Profiler::ours("offwaketime", "")),
        Some(Profiler::ours("cpudist", "")),
        Profiler::libbpf_tools("cpudist", ""),
        Some(Profiler::ours("oncputime", "-F 49")),
    ])
}

/// Returns `None` for no profiler, and the profilers that are installed.
fn installed<const N: usize>(contenders: [Option<Profiler>; N]) -> Vec<Option<Profiler>> {
    let mut installed: Vec<_> = contenders.into_iter().filter(Option::is_some).collect();
    installed.insert(0, None);
    installed
}

/// Adds a row for each profiler. `most` has profilers with a bound: the profiler may add at most
/// this multiple of the cost that the program of the same name in libbpf-tools adds.
fn rows(table: &mut Table, what: &str, all: &Measured, most: &[(&str, f64)]) {
    let (base, others) = all.split_first().expect("nothing attached");
    let alone = format_spread(&base.values, 0);
    table.row(&[what, "nothing", &alone, WALL_CLOCK, ""], Verdict::Figure);
    let find = |name: &str| others.iter().find(|figures| name_of(figures) == name);
    for figures in others {
        let name = name_of(figures);
        let more = median(figures.added_to(base));
        let measured = format!("{}, adds {more:.0}", format_spread(&figures.values, 0));
        let theirs = most
            .iter()
            .find(|(bounded, _)| *bounded == name)
            .map(|(_, most)| (most, find(&format!("libbpf-tools' {name}"))));
        let (text, verdict) = match theirs {
            Some((most, Some(theirs))) => {
                let ratios = figures.ratios_of_added(theirs, base);
                (
                    format!(
                        "at most {most} of what libbpf-tools' adds, is {}",
                        format_spread(&ratios, 2)
                    ),
                    Verdict::of(median(ratios) <= *most),
                )
            }
            Some((_, None)) => (
                "libbpf-tools are not installed".to_owned(),
                Verdict::NotHere,
            ),
            None => (String::new(), Verdict::Figure),
        };
        table.row(&[what, name, &measured, WALL_CLOCK, &text], verdict);
    }
}

fn name_of(figures: &Figures<Option<Profiler>>) -> &str {
    figures
        .subject
        .as_ref()
        .map_or("nothing", |profiler| &profiler.name)
}

/// Returns the seconds that one of perf's scheduler benchmarks takes.
fn perf_bench(benchmark: &str, on_one_cpu: bool) -> f64 {
    let mut command = command(benchmark, on_one_cpu);
    let output = command
        .stderr(Stdio::null())
        .output()
        .expect("start perf bench");
    seconds_in(&output.stdout)
}

fn command(benchmark: &str, on_one_cpu: bool) -> Command {
    let cpu = if on_one_cpu {
        (cpus_online() - 1).to_string()
    } else {
        format!("0-{}", cpus_online() - 1)
    };
    let mut command = Command::new("taskset");
    command.args(["-c", &cpu, "perf", "bench", "-f", "simple", "sched"]);
    command.args(benchmark.split_whitespace());
    command
}

fn seconds_in(stdout: &[u8]) -> f64 {
    let text = String::from_utf8_lossy(stdout);
    let seconds = text.lines().find_map(|line| line.trim().parse().ok());
    seconds.unwrap_or_else(|| panic!("no seconds in {text:?}"))
}

/// Benchmark that waits for SIGCONT before it begins. Its process ID is known meanwhile.
struct Stopped(Running);

impl Stopped {
    fn start(benchmark: &str) -> Stopped {
        let inner = command(benchmark, true);
        let words: Vec<_> = std::iter::once(inner.get_program())
            .chain(inner.get_args())
            .map(|word| word.to_str().expect("plain words"))
            .collect();
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("kill -STOP $$; exec {}", words.join(" "))]);
        let running = Running::spawn(shell, true);
        sleep(Duration::from_millis(50));
        Stopped(running)
    }

    fn pid(&self) -> u32 {
        self.0.pid()
    }

    fn run(self) -> f64 {
        let pid = Pid::from_raw(self.0.pid().cast_signed()).expect("a process");
        kill_process(pid, Signal::CONT).expect("continue the benchmark");
        let finished = self.0.finish_within(Duration::from_secs(60)).succeeded();
        seconds_in(&finished.stdout)
    }
}
