//! Functions of Java by their time, beside the stacks that the virtual machine prints of itself for
//! jstack.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use systemscope_tests::printed::folded::bare;
use systemscope_tests::printed::table::{Table, Verdict};
use systemscope_tests::programs::javas::{Java, compile, javas};
use systemscope_tests::programs::sources::source;
use systemscope_tests::programs::versions::version;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{Folded, Watch, Workload};

/// Functions of `Ranked.java`, from the shortest time to the longest.
const FUNCTIONS: [&str; 12] = [
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
    "eleventh", "twelfth",
];
/// Number of functions that are compared by their rank.
const TOP: usize = 10;
const LENGTH: Duration = Duration::from_secs(10);
/// Longest time until the machine has printed its stacks.
const PATIENCE: Duration = Duration::from_secs(5);
const HERTZ: u64 = 999;
/// Largest difference between two shares, in standard errors. One of 24 functions exceeds it by
/// chance in 1 of 600 runs.
const MOST_ERRORS: f64 = 4.0;

/// Measures each virtual machine.
pub(crate) fn rows(table: &mut Table) {
    for java in javas() {
        measure(table, &java);
    }
}

fn measure(table: &mut Table, java: &Java) {
    let folder = scratch();
    compile(&source("Ranked.java"), folder.path());
    let mut command = Command::new(&java.path);
    command.arg("-cp").arg(folder.path()).arg("Ranked");
    let program = Workload::run(command, java.path.clone(), folder);
    let mut on_cpu = Watch::oncputime(program.pid(), &format!("-F {HERTZ}"));
    let mut off_cpu = Watch::offcputime(program.pid(), "");
    on_cpu.open();
    off_cpu.open();
    let dumps = dumps(&program, &java.path);
    let (on_cpu, off_cpu) = (on_cpu.close().folded, off_cpu.close().folded);
    let name = version(&java.path);
    let computing = Ranking::of(&dumps, "computing", &on_cpu, "");
    computing.row(table, "on CPU", &name, Some(computing.seen));
    Ranking::of(&dumps, "waiting", &off_cpu, "Wait").row(table, "off CPU", &name, None);
}

/// Asks the machine for the stacks of its threads at uneven intervals, as jstack does.
fn dumps(program: &Workload, java: &Path) -> Vec<String> {
    let pid = program.pid();
    // The machine opens its socket at the first request.
    let asked = Command::new(java.with_file_name("jstack"))
        .arg(pid.to_string())
        .output();
    assert!(
        asked.expect("start jstack").status.success(),
        "jstack {pid}"
    );
    let socket = format!("/tmp/.java_pid{pid}");
    let (begun, mut noise, mut dumps) = (Instant::now(), 1_u64, Vec::new());
    while begun.elapsed() < LENGTH {
        noise = noise
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        sleep(Duration::from_micros(2000 + (noise >> 33) % 8000));
        let mut dump = String::new();
        let mut machine = UnixStream::connect(&socket).expect("the machine's socket");
        // Version of the protocol, request, and three arguments (attachListener_posix.cpp).
        let asked = machine
            .set_read_timeout(Some(PATIENCE))
            .and_then(|()| machine.write_all(b"1\0threaddump\0\0\0\0"));
        // A machine that does not answer has too few stacks in the end.
        if asked
            .and_then(|()| machine.read_to_string(&mut dump))
            .is_ok()
        {
            dumps.push(dump);
        }
    }
    dumps
}

/// Returns the frames of a thread in a dump.
fn frames<'a>(dump: &'a str, thread: &str) -> impl Iterator<Item = &'a str> {
    let head = format!("\"{thread}\" ");
    let lines = dump
        .lines()
        .skip_while(move |line| !line.starts_with(&head));
    let frames = lines.skip(1).take_while(|line| !line.is_empty());
    frames.filter_map(|line| line.trim_start().strip_prefix("at ")?.split('(').next())
}

/// Shares of functions by jstack and by a tool.
struct Ranking {
    /// Stacks of jstack in which the thread was in one of the functions.
    stacks: u64,
    /// Value of the tool's stacks with one of the functions.
    seen: u64,
    /// Functions with their share in those stacks, and their share by the tool.
    functions: Vec<(String, f64, f64)>,
}

impl Ranking {
    fn of(dumps: &[String], thread: &str, seen: &Folded, ending: &str) -> Ranking {
        let names = FUNCTIONS.map(|name| format!("Ranked.{name}{ending}"));
        let hits = names.each_ref().map(|name| {
            let has = |dump: &&String| frames(dump, thread).any(|frame| frame == name);
            dumps.iter().filter(has).count() as u64
        });
        let times = names.each_ref().map(|name| {
            let has = |frame: &String| bare(frame) == name;
            seen.only(|line| line.frames.iter().any(has)).total()
        });
        let (stacks, time): (u64, u64) = (hits.iter().sum(), times.iter().sum());
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let functions = FUNCTIONS.iter().zip(hits.iter().zip(times));
        Ranking {
            stacks,
            seen: time,
            functions: functions
                .map(|(name, (hits, seen))| {
                    ((*name).to_owned(), share(*hits, stacks), share(seen, time))
                })
                .collect(),
        }
    }

    /// Returns the names of the functions with the largest shares.
    fn top(&self, share: impl Fn(&(String, f64, f64)) -> f64) -> Vec<&str> {
        let mut functions: Vec<_> = self.functions.iter().collect();
        functions.sort_by(|one, other| share(other).total_cmp(&share(one)));
        let names = functions.iter().map(|(name, ..)| &**name);
        names.take(TOP).collect()
    }

    /// Returns the function whose shares differ most, and the difference in standard errors.
    /// `samples`: those of the tool, if it samples.
    fn worst(&self, samples: Option<u64>) -> (&(String, f64, f64), f64) {
        let chance = samples.map_or(0.0, |samples| 1.0 / samples.max(1) as f64);
        let chance = chance + 1.0 / self.stacks.max(1) as f64;
        let errors = self.functions.iter().map(|function| {
            let (_, jstack, seen) = function;
            let error = (jstack - seen).abs() / (seen * (1.0 - seen) * chance).sqrt();
            (function, if error.is_nan() { f64::INFINITY } else { error })
        });
        let worst = errors.max_by(|one, other| one.1.total_cmp(&other.1));
        worst.expect("a function")
    }

    fn row(&self, table: &mut Table, what: &str, version: &str, samples: Option<u64>) {
        let jstack = self.top(|(_, share, _)| *share);
        let seen = self.top(|(_, _, share)| *share);
        let shared = seen.iter().filter(|name| jstack.contains(name)).count();
        let ((name, by_jstack, by_tool), errors) = self.worst(samples);
        let (by_jstack, by_tool) = (by_jstack * 100.0, by_tool * 100.0);
        let cells = [
            &format!("functions by time {what}"),
            version,
            &format!("{} stacks of jstack", self.stacks),
            &format!(
                "{shared} of its top {TOP}; differs most in `{name}`: {by_tool:.1} %, jstack {by_jstack:.1} %, \
                 {errors:.1} standard errors"
            ),
            &format!("within {MOST_ERRORS} standard errors"),
            "",
        ];
        table.row(
            &cells,
            Verdict::of(errors <= MOST_ERRORS && self.stacks > 500),
        );
    }
}
