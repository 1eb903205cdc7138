//! Threads that wait for Python's global lock, beside what they know of who held it.
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

/// Times that the lock is held, for 50 ms each.
const ROUNDS: &str = "30";
/// What is shown may be off by so much.
const TOLERANCE: f64 = 0.02;

/// Nanoseconds by who waited and who held the lock meanwhile, by their IDs.
type Waited = BTreeMap<(u32, u32), u64>;

/// What the threads of `global_lock.py` say, and what offcputime does.
fn waited(python: &Python) -> (Waited, Folded) {
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

/// What is shown of a thread under the lock while this one had it. Python 3.14 gives threads
/// names, by which they are told; the others need their IDs.
fn held_by(holder: u32, folded: &Folded, waiter: u32) -> u64 {
    let of_holder = folded.of_thread(holder);
    let line = &of_holder.lines[0];
    let (pid, _) = line.thread.unwrap();
    let is_called = line.comm != folded.of_thread(pid).lines[0].comm;
    let end = match is_called {
        true => format!(", held by {}]", line.comm),
        false => format!(", held by {}/{holder}]", line.comm),
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
            let (waited, folded) = waited(&python);
            let what = python.path.display();
            // Two wait for each of three.
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
