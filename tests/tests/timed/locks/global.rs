//! Waits for Python's global lock, against the holders that the threads report.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::process::Command;

use rustix::process::Signal;
use systemscope_tests::programs::pythons::{Python, some_pythons};
use systemscope_tests::programs::sources::source;
use systemscope_tests::programs::tool::PATIENCE;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::tries::patiently;
use systemscope_tests::{Folded, Tool, Turn, Workload};

/// Number of holds of the lock, of 50 ms each.
const ROUNDS: &str = "30";
/// Tolerance of the shown time, as a share.
const TOLERANCE: f64 = 0.02;

/// Time in ns that a thread waited while another thread held the lock, by the IDs of both.
type Waited = BTreeMap<(u32, u32), u64>;

/// Runs `global_lock.py`. Returns the waits that its threads report and the output of offcputime.
fn measure(python: &Python) -> (Waited, Folded) {
    let path = source("global_lock.py");
    let mut command = Command::new(&python.path);
    command.arg(path).arg(ROUNDS);
    let mut workload = Workload::run(command, python.path.clone(), scratch());
    let tool = Tool::new("offcputime").args("--reasons --per-thread --nanoseconds");
    let running = tool.pid(workload.pid()).start_measuring();
    workload.go();
    let mut waited = Waited::new();
    loop {
        let line = workload.next_line();
        let words: Vec<&str> = line.split(' ').collect();
        let ["waited", waiter, holder, time] = words[..] else {
            assert_eq!(line, "done");
            break;
        };
        let id = |text: &str| text.parse::<u32>().unwrap();
        waited.insert((id(waiter), id(holder)), time.parse().unwrap());
    }
    running.signal(Signal::INT);
    let shown = running.finish_within(PATIENCE).succeeded().stdout;
    (waited, Folded::parse_per_thread(&shown))
}

/// Returns the time that is shown for a waiter while `holder` held the lock. Python 3.14 names its
/// threads, and the names identify them. Threads of earlier versions have an ID in the label.
fn held_by(holder: u32, folded: &Folded, waiter: u32) -> u64 {
    let of_holder = folded.of_thread(holder);
    let line = &of_holder.lines[0];
    let (pid, _) = line.thread.unwrap();
    let is_called = line.comm != folded.of_thread(pid).lines[0].comm;
    let end = if is_called {
        format!(", held by {}]", line.comm)
    } else {
        format!(", held by {}/{holder}]", line.comm)
    };
    let is_held = |frame: &String| frame.starts_with("[lock: GIL, ") && frame.ends_with(&end);
    let waits = folded.of_thread(waiter);
    waits.only(|line| line.frames.iter().any(is_held)).total()
}

#[test]
#[ignore = "runs several interpreters, one after another"]
fn waits_for_the_global_lock_are_under_who_held_it() {
    let _turn = Turn::share();
    for python in some_pythons() {
        patiently(|| {
            let (waited, folded) = measure(&python);
            let what = python.path.display();
            // Each of three threads waits for the other two.
            assert_eq!(waited.len(), 6, "{what}: {waited:?}");
            for ((waiter, holder), truth) in &waited {
                let shown = held_by(*holder, &folded, *waiter);
                let off = shown.abs_diff(*truth) as f64 / *truth as f64;
                assert!(
                    off <= TOLERANCE,
                    "{what}: {waiter} waited {truth} ns for {holder}, and {shown} ns are shown"
                );
            }
        });
    }
}
