//! Waits of Java, against programs that know for how long, on what and behind whom they waited, and
//! against the virtual machine's own log.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use systemscope_tests::printed::folded::reason;
use systemscope_tests::programs::javas::{Java, compile, java, javas};
use systemscope_tests::programs::sources::source;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{Folded, Line, Turn, Watch, Workload, patiently};

/// Largest difference between a tool's time and the program's own, as a part of the latter.
const TOLERANCE: f64 = 0.02;
/// Difference that is allowed for short waits, in ns. Threads try again for some time before they
/// block.
const SPINNING_NS: f64 = 2e6;

/// Time for which a thread of `Locks.java` waited while another thread held a lock.
#[derive(Debug, Deserialize)]
struct Row {
    name: String,
    kind: String,
    /// Class of the lock.
    #[serde(rename = "type")]
    class: String,
    /// Thread that held the lock; empty if readers did.
    holder: String,
    waited_ns: u64,
}

/// Compiles a program in a new folder, and starts it there.
fn start(java: &Java, flags: &str, program: &str, arguments: &[&str]) -> Workload {
    let folder = scratch();
    compile(&source(&format!("{program}.java")), folder.path());
    let mut command = Command::new(&java.path);
    command
        .args(flags.split_whitespace())
        .current_dir(folder.path());
    // Names of threads are not ASCII.
    command
        .args(["-cp", ".", program])
        .args(arguments)
        .env("LC_ALL", "C.UTF-8");
    Workload::run(command, java.path.clone(), folder)
}

/// Returns the time off the CPU of the threads of a program, from the test's line until the program is done.
fn waits(program: &mut Workload) -> Folded {
    let mut watch = Watch::offcputime(program.pid(), "--reasons");
    watch.open();
    program.go();
    program.wait_done();
    watch.close().folded
}

/// Returns the time for which the thread with this name waited for the reason.
fn waited_ns(waits: &Folded, thread: &str, wanted: &str) -> u64 {
    let is_wanted = |line: &Line| line.comm == thread && reason(line.leaf()) == Some(wanted);
    waits.only(is_wanted).total()
}

/// Returns the time for which the thread with this name waited for a CPU.
fn runnable_ns(waits: &Folded, thread: &str) -> u64 {
    let is_runnable = |line: &Line| line.comm == thread && line.leaf().ends_with("_[r]");
    waits.only(is_runnable).total()
}

#[track_caller]
fn assert_near(what: &str, seen_ns: u64, told_ns: u64, waits: &Folded) {
    let most = TOLERANCE * told_ns as f64 + SPINNING_NS;
    let difference = seen_ns as f64 - told_ns as f64;
    assert!(
        difference.abs() <= most,
        "{what}: {seen_ns} ns, not {told_ns} ns:{waits}"
    );
}

/// Checks the names of the threads, and for which locks they waited, and behind whom.
fn assert_locks_are_known(java: &Java) {
    patiently(|| {
        let mut program = start(java, "", "Locks", &["rows"]);
        let waits = waits(&mut program);
        let rows = fs::read_to_string(program.folder().join("rows")).unwrap();
        let rows = rows.lines().map(|line| serde_json::from_str(line).unwrap());
        let rows: Vec<Row> = rows.collect();
        let names = waits.comms();
        for name in ["main", "Reference Handler", "größe-mit-日本-und-mehr"] {
            assert!(names.contains(name), "{java:?}: no {name}: {names:?}");
        }
        let mut known_ns = 0;
        let mut locks = Vec::new();
        for row in &rows {
            let lock = format!("lock: {}, {}", row.kind, row.class);
            let wait = match &*row.holder {
                "" => lock.clone(),
                holder => format!("{lock}, held by {holder}"),
            };
            let seen_ns = waited_ns(&waits, &row.name, &wait);
            // A monitor wakes its next owner at times, which then may wait for a CPU.
            let runnable = runnable_ns(&waits, &row.name) as f64;
            let told = row.waited_ns as f64;
            let least = told * (1.0 - TOLERANCE) - SPINNING_NS - runnable;
            let most = told * (1.0 + TOLERANCE) + SPINNING_NS;
            assert!(
                (least..=most).contains(&(seen_ns as f64)),
                "{java:?}: {row:?}: {seen_ns} ns, and {runnable} ns runnable:{waits}"
            );
            known_ns += seen_ns;
            locks.push(format!("[{lock}"));
        }
        // Six threads waited most of the time: behind one owner, behind two in turn, behind one
        // that took the lock while its next owner woke up, or behind a reader.
        let told_ns: u64 = rows.iter().map(|row| row.waited_ns).sum();
        assert!(
            rows.len() >= 9 && told_ns > 16_000_000_000 && known_ns as f64 > 0.8 * told_ns as f64,
            "{java:?}: {known_ns} of {told_ns} ns: {rows:?}"
        );
        let is_lock = |line: &Line| locks.iter().any(|lock| line.leaf().starts_with(lock));
        let all = waits.only(is_lock);
        assert_near(&format!("{java:?}: all locks"), known_ns, all.total(), &all);
        let latch = "condition: park, java.util.concurrent.CountDownLatch$Sync";
        let latch_ns = waited_ns(&waits, "waiting-for-the-latch", latch);
        assert!(latch_ns > 2_900_000_000, "{java:?}: {latch_ns}{waits}");
        let sleep_ns = waited_ns(&waits, "main", "sleep: for a time");
        assert!(sleep_ns > 2_900_000_000, "{java:?}: {sleep_ns}{waits}");
    });
}

#[test]
fn locks_have_their_class_and_their_holder() {
    let _turn = Turn::share();
    assert_locks_are_known(&java());
}

#[test]
#[ignore = "starts each virtual machine"]
fn locks_of_every_version_are_known() {
    let _turn = Turn::share();
    for java in javas() {
        assert_locks_are_known(&java);
    }
}

/// Stop of all threads, in the machine's log.
#[derive(Debug)]
struct Stop {
    operation: String,
    /// Time from the request until all threads run again, in ns.
    total_ns: u64,
    /// Part of that time in which all threads have stopped, in ns.
    stopped_ns: u64,
}

/// Reads the machine's log of stops.
fn stops(log: &Path) -> Vec<Stop> {
    let log = fs::read_to_string(log).unwrap();
    let number = |line: &str, name: &str| -> Option<u64> {
        let (_, rest) = line.split_once(name)?;
        rest.split(' ').next()?.parse().ok()
    };
    let stop = |line: &str| {
        Some(Stop {
            operation: line.split('"').nth(1)?.to_owned(),
            total_ns: number(line, "Total: ")?,
            stopped_ns: number(line, "At safepoint: ")?,
        })
    };
    log.lines().filter_map(stop).collect()
}

#[test]
fn stops_are_those_of_the_machines_log() {
    let _turn = Turn::share();
    patiently(|| {
        let flags = "-Xms1g -Xmx1g -Xlog:safepoint:file=log";
        let mut program = start(&java(), flags, "Stops", &[]);
        let log = program.folder().join("log");
        let before = stops(&log).len();
        let waits = waits(&mut program);
        let stops = &stops(&log)[before..];
        let sum = |of: fn(&Stop) -> u64, operations: &[&str]| -> u64 {
            let has = |stop: &&Stop| operations.iter().any(|it| stop.operation.starts_with(it));
            stops.iter().filter(has).map(of).sum()
        };
        let total_ns: fn(&Stop) -> u64 = |stop| stop.total_ns;
        let collections = waited_ns(&waits, "asking", "runtime: garbage collection");
        assert_near("collections", collections, sum(total_ns, &["G1"]), &waits);
        let forced_ns = sum(total_ns, &["G1CollectFull"]);
        assert_near(
            "own collections",
            program.told("collections"),
            forced_ns,
            &waits,
        );
        let counts = waited_ns(&waits, "asking", "runtime: VM operation");
        assert_near(
            "counts",
            counts,
            sum(total_ns, &["GC_HeapInspection"]),
            &waits,
        );
        assert!(counts <= program.told("counts"), "{counts}{waits}");
        // The computing thread goes on for a part of the time until all threads have stopped.
        let computing = waited_ns(&waits, "computing", "runtime: safepoint");
        let least = sum(|stop| stop.stopped_ns, &[""]) as f64 * (1.0 - TOLERANCE);
        let most = sum(total_ns, &[""]) as f64 * (1.0 + TOLERANCE);
        assert!(
            least > 1e9 && (least..=most).contains(&(computing as f64)),
            "{computing} ns, not {least} to {most}: {stops:?}{waits}"
        );
    });
}
