//! Locks of language runtimes: the reasons of waits, and the functions that release the locks.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::PathBuf;
use std::process::Command;

use systemscope_tests::printed::folded;
use systemscope_tests::printed::wakers::STILL_BLOCKED;
use systemscope_tests::programs::pythons::some_pythons;
use systemscope_tests::programs::sources::source;
use systemscope_tests::programs::workload::{Language, scratch};
use systemscope_tests::tries::patiently;
use systemscope_tests::{Folded, Line, Tool, Turn, Workload, WorkloadBuilder};

use crate::locks;

/// Minimum share of a thread's blocked time with the right reason, and of the ended waits with the
/// right releaser.
const LEAST_SHARE: f64 = 0.99;
/// Separator of the parts of a line.
const BETWEEN: &str = "--";

/// Waiting function or thread, reason, and releasing function or thread.
type Wait = (&'static str, &'static str, Option<&'static str>);

const RUST: [Wait; 4] = [
    (
        "want_mutex",
        "lock: mutex, rust_locks::MUTEX",
        Some("let_go"),
    ),
    (
        "want_rwlock",
        "lock: rwlock, rust_locks::RWLOCK",
        Some("let_go"),
    ),
    (
        "want_parking_mutex",
        "lock: mutex, in rust_locks::want_parking_mutex",
        Some("let_go"),
    ),
    (
        "want_parking_rwlock",
        "lock: rwlock, in rust_locks::want_parking_rwlock",
        Some("let_go"),
    ),
];
const PYTHON: [Wait; 6] = [
    (
        "locks.py:want_lock",
        "lock: Python lock, in locks.py:want_lock",
        Some("locks.py:let_go"),
    ),
    (
        "locks.py:want_rlock",
        "lock: Python lock, in locks.py:want_rlock",
        Some("locks.py:let_go"),
    ),
    (
        "locks.py:want_semaphore",
        "condition: Python condition",
        Some("locks.py:let_go"),
    ),
    (
        "locks.py:want_condition",
        "condition: Python condition",
        Some("locks.py:let_go"),
    ),
    (
        "locks.py:want_number",
        "condition: Python condition",
        Some("locks.py:let_go"),
    ),
    ("locks.py:want_end", "child: thread", None),
];
/// One thread that waits for a monitor wakes
/// from time to time.
const JAVA: [Wait; 3] = [
    ("l_monitor", "lock: Java monitor", None),
    ("l_lock", "lock: Java lock", Some("l_holder")),
    ("l_condition", "condition: Java monitor", Some("l_holder")),
];
/// Reasons for which threads of Go wait: goroutines that can run, and resources for which the
/// runtime waits on behalf of goroutines.
const GO: [&str; 4] = [
    "condition: goroutine to run",
    "lock: runtime lock",
    "events: epoll",
    "sleep: for a time",
];
/// Python's threads wait for this lock before and after they wait for another lock.
const GIL: &str = "lock: GIL";

fn measure(workload: &Workload) -> Folded {
    let tool = Tool::new("offwaketime").args("-m 0 --reasons --states --nanoseconds");
    tool.pid(workload.pid()).folded(3.0)
}

/// Returns the reason for which the sleeper of a line was blocked.
fn reason(line: &Line) -> Option<&str> {
    let sleeper = line.frames.iter().take_while(|frame| *frame != BETWEEN);
    let leaf = sleeper.last().filter(|leaf| leaf.ends_with("]_[o]"))?;
    folded::reason(leaf)
}

#[track_caller]
fn assert_waits(what: &str, folded: &Folded, waits: &[Wait]) {
    let mut wrong = Vec::new();
    for (function, expected, let_go) in waits {
        let (mut all, mut right, mut ended, mut released) = (0, 0, 0, 0);
        for line in &folded.lines {
            let mut parts = line.frames.split(|frame| frame == BETWEEN);
            let mut has = |name: &str| {
                let part = parts.next().unwrap_or_default();
                part.iter().any(|frame| frame.contains(name))
            };
            let is_its = has(function) || line.comm == *function;
            let said = reason(line).filter(|said| is_its && !said.starts_with(GIL));
            let Some(said) = said else {
                continue;
            };
            all += line.value;
            if said.starts_with(expected) {
                right += line.value;
                if line.waker().comm != STILL_BLOCKED {
                    ended += line.value;
                    released += if let_go.is_none_or(&mut has) {
                        line.value
                    } else {
                        0
                    };
                }
            }
        }
        let is_most = |part: u64, whole: u64| part as f64 >= whole as f64 * LEAST_SHARE;
        // The window's end cuts one of many waits.
        if ended * 2 <= right || !is_most(right, all) || !is_most(released, ended) {
            wrong.push(format!(
                "{what}: {function}: of {all} ns {right} are for {expected}, {ended} of them ended, {released} in {let_go:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}\n{folded}", wrong.join("\n"));
}

#[test]
fn locks_of_rusts_are_told_with_who_let_them_go() {
    let _turn = Turn::share();
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_rust_locks"));
    let locks = Workload::run(Command::new(&binary), binary, scratch());
    patiently(|| assert_waits("Rust", &measure(&locks), &RUST));
}

/// Checks that a lock was released in a function of Python, which can be far from the leaf.
#[track_caller]
fn assert_released(table: &str, lock: &str, let_go: &str) {
    let rows = locks::rows(table);
    let row = rows.iter().find(|(what, _)| what == lock);
    let is_released = row.is_some_and(|(_, row)| row.is_released(|told| told.contains(let_go)));
    assert!(is_released, "{lock}: {table}");
}

#[test]
#[ignore = "runs several interpreters, one after another"]
fn locks_of_pythons_are_told_with_who_let_them_go() {
    let _turn = Turn::share();
    let script = source("locks.py");
    for python in some_pythons() {
        let mut command = Command::new(&python.path);
        command.arg(&script);
        let program = Workload::run(command, python.path.clone(), scratch());
        let what = python.path.display().to_string();
        patiently(|| assert_waits(&what, &measure(&program), &PYTHON));
        patiently(|| {
            let tool = Tool::new("offcputime").args("-m 1000 --format waits 2");
            let table = locks::table(tool.pid(program.pid()));
            for (_, lock, let_go) in &PYTHON[..2] {
                assert_released(&table, lock, let_go.unwrap_or_default());
            }
        });
    }
}

#[test]
#[ignore = "compiles and starts a JVM"]
fn locks_of_javas_are_told_with_who_let_them_go() {
    let _turn = Turn::share();
    let folder = scratch();
    let mut compiler = Command::new("javac");
    compiler.arg("-d").arg(folder.path());
    compiler.arg(source("Releases.java"));
    assert!(compiler.status().expect("javac").success());
    let mut machine = Command::new("java");
    machine.arg("-cp").arg(folder.path()).arg("Releases");
    let locks = Workload::run(machine, "java".into(), folder);
    patiently(|| assert_waits("Java", &measure(&locks), &JAVA));
}

#[test]
fn threads_of_gos_wait_for_goroutines() {
    let _turn = Turn::share();
    let busy = WorkloadBuilder::new("busy").language(Language::Go).start();
    patiently(|| {
        let folded = measure(&busy);
        let blocked = folded.only(|line| reason(line).is_some());
        let known = blocked.only(|line| {
            let said = reason(line).unwrap_or_default();
            GO.iter().any(|known| said.starts_with(known))
        });
        let (known, all) = (known.total(), blocked.total());
        assert!(
            all > 0 && known as f64 >= all as f64 * LEAST_SHARE,
            "{known} of {all} ns: {folded}"
        );
    });
}
