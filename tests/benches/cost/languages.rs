//! Cost of the frames of languages for a thread with frames, for a thread without frames, and for a
//! server.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use systemscope_tests::printed::output::median;
use systemscope_tests::printed::table::{Table, Verdict};
use systemscope_tests::programs::javas::{compile, java};
use systemscope_tests::programs::nodes::nodes;
use systemscope_tests::programs::peers::{Profiler, beside};
use systemscope_tests::programs::php::phps;
use systemscope_tests::programs::pythons::some_pythons;
use systemscope_tests::programs::rubies::rubies;
use systemscope_tests::programs::sources::source;
use systemscope_tests::programs::versions::version;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::truth::account::threads_of;
use systemscope_tests::truth::statistics::cost_of;
use systemscope_tests::{Account, Running, Workload, cpus_online};

use crate::figures::{BPF_AND_CPU_TIME, BPF_TIME, WALL_CLOCK, format_spread, in_turn};

const ROUNDS: usize = 5;
const WINDOW: Duration = Duration::from_millis(1000);
/// Depths of the chain of calls.
const FEW: u64 = 1;
const MANY: u64 = 20;
/// Time in which runtimes compile what runs most.
const WARM_UP: Duration = Duration::from_secs(3);
/// Largest ratio of a switch's cost with languages to the cost without them, in a process without
/// a runtime.
const MAX_RATIO: f64 = 1.02;
const ROUNDS_OF_REQUESTS: usize = 9;
const CONNECTIONS: u32 = 16;
const SECONDS: u32 = 2;
/// Largest loss of a server's requests a second, in percent.
const MAX_PERCENT: f64 = 3.0;
const OURS: &str = "offcputime -p PID -m 1000";

/// Program that sleeps for a moment over and over, below a given number of functions.
struct Deep {
    /// Runtime, for the table.
    name: String,
    program: PathBuf,
    /// Arguments before the number of functions.
    arguments: Vec<OsString>,
    /// Largest cost of [`MANY`] frames in ns, at the switch off the CPU and the switch back
    /// together.
    max_ns: f64,
}

impl Deep {
    fn new(program: &Path, script: &str, max_ns: f64) -> Deep {
        Deep {
            name: version(program),
            program: program.to_owned(),
            arguments: vec![source(script).into()],
            max_ns,
        }
    }

    fn java(classes: &Path, flag: &str, max_ns: f64) -> Deep {
        let class: [OsString; 3] = ["-cp".into(), classes.into(), "Deep".into()];
        Deep {
            name: format!("{} {flag}", version(&java().path)),
            program: java().path,
            arguments: [&[flag.into()], &class[..]].concat(),
            max_ns,
        }
    }

    fn start(&self, functions: u64) -> Workload {
        let mut command = Command::new("taskset");
        command
            .args(["-c", "1"])
            .arg(&self.program)
            .args(&self.arguments)
            .arg(functions.to_string());
        Workload::run(command, self.program.clone(), scratch())
    }
}

/// Measures a thread of each runtime that sleeps for a moment over and over, below few and below
/// many functions.
pub(crate) fn frames(table: &mut Table) {
    let classes = scratch();
    compile(&source("Deep.java"), classes.path());
    let pythons = some_pythons().into_iter();
    let all = pythons.map(|python| Deep::new(&python.path, "deep.py", 2000.0));
    let nodes = nodes().into_iter();
    let nodes = nodes.map(|node| Deep::new(&node.path, "deep.js", 3000.0));
    let others = [
        Deep::new(&phps()[0], "deep.php", 2000.0),
        Deep::new(&rubies()[0], "deep.rb", 2000.0),
        Deep::java(classes.path(), "-Xint", 4000.0),
        Deep::java(classes.path(), "-XX:-Inline", 4000.0),
        Deep::java(classes.path(), "-XX:+Inline", 4000.0),
    ];
    for deep in all.chain(nodes).chain(others) {
        frames_of(&deep, table);
    }
}

fn frames_of(deep: &Deep, table: &mut Table) {
    let (few, many) = (deep.start(FEW), deep.start(MANY));
    // Runtimes compile the functions that run most.
    sleep(WARM_UP);
    let profiler =
        |language| Profiler::ours("offcputime", &format!("-p PID --language {language}"));
    let things = [
        (&few, profiler("none")),
        (&few, profiler("all")),
        (&many, profiler("none")),
        (&many, profiler("all")),
    ];
    let all = in_turn(ROUNDS, things, |(workload, profiler)| {
        ns_a_stop(workload.pid(), profiler)
    });
    let [few_none, few_all, none, with] = &all[..] else {
        unreachable!("there are four profilers");
    };
    let (added_by_few, added) = (few_all.added_to(few_none), with.added_to(none));
    let a_frame = (median(added.clone()) - median(added_by_few)) / (MANY - FEW) as f64;
    let cells = [
        &format!("ns a stop that {MANY} functions add, {}", deep.name),
        "offcputime -p PID",
        &format!("{}, {a_frame:.0} a function", format_spread(&added, 0)),
        BPF_TIME,
        &format!(
            "at most {}; without {}",
            deep.max_ns,
            format_spread(&none.values, 0)
        ),
    ];
    table.row(&cells, Verdict::of(median(added) <= deep.max_ns));
}

/// Returns the run time of the BPF programs for each voluntary switch of the process, in ns. The
/// programs also run at the switches of other processes, where they return at once.
fn ns_a_stop(pid: u32, profiler: &Profiler) -> f64 {
    const FEWEST: u64 = 100;
    let stops = || -> u64 {
        let threads = threads_of(pid).into_iter();
        threads
            .filter_map(|tid| Account::read(pid, tid))
            .map(|account| account.voluntary)
            .sum()
    };
    let cost = cost_of(profiler, pid, || {
        let before = stops();
        sleep(WINDOW);
        stops() - before
    });
    assert!(cost.done >= FEWEST, "{} stops: no mean", cost.done);
    cost.run_ns() as f64 / cost.done as f64
}

/// Measures two processes without such a runtime that pass a byte back and forth. The measurement without
/// languages is made twice, and the difference is the machine's noise.
pub(crate) fn without_runtimes(table: &mut Table) {
    const ROUNDS: usize = 9;
    let ping_pong = Workload::start("ping_pong", &[cpus_online() - 1]);
    let things = ["none", "none", "all"]
        .map(|language| Profiler::ours("offcputime", &format!("-p PID --language {language}")));
    let all = in_turn(ROUNDS, things, |profiler| {
        ns_a_stop(ping_pong.pid(), profiler)
    });
    let [none, again, with] = &all[..] else {
        unreachable!("there are three profilers");
    };
    let (noise, ratios) = (median(again.ratios(none)), with.ratios(none));
    let bound = format!(
        "at most {MAX_RATIO} of what it is without, is {}; without again {noise:.2}",
        format_spread(&ratios, 2)
    );
    let holds = median(ratios) <= MAX_RATIO;
    let cells = [
        "ns a stop of a ping-pong without a runtime",
        &with.subject.name,
        &format_spread(&with.values, 0),
        BPF_TIME,
        &bound,
    ];
    let is_calm = (noise - 1.0).abs() <= MAX_RATIO - 1.0;
    table.row(&cells, judge(is_calm, holds));
    let cells = [
        cells[0],
        &none.subject.name,
        &format_spread(&none.values, 0),
        BPF_TIME,
        "",
    ];
    table.row(&cells, Verdict::Figure);
}

/// Measures the requests a second of an asyncio server, and the time that the profilers take for
/// each request.
pub(crate) fn requests(table: &mut Table) {
    let python = &some_pythons()[0].path;
    let mut command = Command::new(python);
    command.arg(source("asyncio_server.py"));
    let server = Workload::run(command, python.clone(), scratch());
    let contenders = [
        Profiler::ours("offcputime", "-p PID -m 1000"),
        Profiler::py_spy(""),
    ];
    // The second measurement without a profiler shows the noise.
    let with_nothing = [None, None].into_iter().chain(contenders.iter().map(Some));
    let all = in_turn(ROUNDS_OF_REQUESTS, with_nothing, |profiler| {
        beside(*profiler, server.pid(), || requests_per_second(&server))
    });
    let (nothing, others) = all.split_first().expect("nothing attached");
    let noise = median(others[0].percent_below(nothing));
    let what = format!("requests/s of a server of asyncio's, {CONNECTIONS} connections");
    let alone = format_spread(&nothing.values, 0);
    table.row(&[&what, "nothing", &alone, WALL_CLOCK, ""], Verdict::Figure);
    for figures in others {
        let name = figures
            .subject
            .map_or("nothing again", |profiler| &profiler.name);
        let less = figures.percent_below(nothing);
        let measured = format!(
            "{}, takes {} %",
            format_spread(&figures.values, 0),
            format_spread(&less, 1)
        );
        let (bound, verdict) = match name {
            OURS => (
                format!("takes at most {MAX_PERCENT} %; nothing again {noise:.1} %"),
                judge(noise.abs() <= MAX_PERCENT, median(less) <= MAX_PERCENT),
            ),
            _ => (String::new(), Verdict::Figure),
        };
        table.row(&[&what, name, &measured, WALL_CLOCK, &bound], verdict);
    }
    for profiler in &contenders {
        let us: Vec<f64> = (0..3).map(|_| us_a_request(&server, profiler)).collect();
        let what = "us of BPF programs and of the profiler itself a request";
        let cells = [
            what,
            &profiler.name,
            &format_spread(&us, 1),
            BPF_AND_CPU_TIME,
            "",
        ];
        table.row(&cells, Verdict::Figure);
    }
}

/// Returns the verdict. It is [`Verdict::NotHere`] if the machine's noise exceeds the bound.
fn judge(is_calm: bool, holds: bool) -> Verdict {
    if is_calm {
        Verdict::of(holds)
    } else {
        Verdict::NotHere
    }
}

fn us_a_request(server: &Workload, profiler: &Profiler) -> f64 {
    let cost = cost_of(profiler, server.pid(), || requests_per_second(server));
    (cost.run_ns() + cost.cpu_ns) as f64 / 1e3 / (cost.done * f64::from(SECONDS))
}

fn requests_per_second(server: &Workload) -> f64 {
    let mut command = Command::new("wrk");
    command.args(["-t1", &format!("-c{CONNECTIONS}"), &format!("-d{SECONDS}")]);
    command.arg(format!("http://127.0.0.1:{}/", server.told("port")));
    let patience = Duration::from_secs(60);
    let finished = Running::spawn(command, true)
        .finish_within(patience)
        .succeeded();
    let text = String::from_utf8_lossy(&finished.stdout);
    let rate = text
        .lines()
        .find_map(|line| line.strip_prefix("Requests/sec:")?.trim().parse().ok());
    rate.unwrap_or_else(|| panic!("no requests in:\n{text}"))
}
