//! `run-tests PROGRAMS [--quick | --all] [--until-failure] [WORD…]`: runs the tests of the
//! programs that cargo built, each in a process of its own. At the end it prints the machine,
//! the slowest tests, and the tests that measured again.
//!
//! PROGRAMS is what `cargo test --no-run --message-format json` printed. Words choose the tests
//! that have one of them in their name. `--quick` leaves out tests marked `#[ignore]`, whose
//! reason says why they cannot be quick; `--all` runs them too. With `--until-failure` no test
//! begins after one has failed.
//!
//! Most of the time most tests wait, so tests run side by side. The tests of [`TIMED`] run after
//! them, at most one for each CPU. The tests of [`ALONE`] run last, one at a time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod kernel_log;
mod outcome;
mod programs;
mod report;
mod schedule;

use std::env;
use std::process::ExitCode;

use systemscope_tests::cpus_online;
use systemscope_tests::programs::pythons::ALL_VERSIONS;

use programs::Test;
use schedule::Schedule;

/// Test programs that compare times.
const TIMED: [&str; 1] = ["timed"];
/// Test programs and tests that have the machine to themselves.
const ALONE: [&str; 2] = ["alone", "collect::hidden_switches"];
/// Number of other tests that run side by side, for each CPU. Most of them wait, and leave the CPU
/// to the rest.
const SIDE_BY_SIDE: usize = 4;

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let path = arguments.next().expect("a file with cargo's output");
    let (flags, words): (Vec<String>, Vec<String>) =
        arguments.partition(|argument| argument.starts_with("--"));
    let until_failure = flags.iter().any(|flag| flag == "--until-failure");
    let quick = flags.iter().any(|flag| flag == "--quick");
    let is_wanted = |test: &Test| {
        let is_chosen = words.is_empty() || words.iter().any(|word| test.name.contains(word));
        is_chosen && !(quick && test.ignored)
    };
    if !quick {
        // SAFETY: no other thread runs yet.
        unsafe { env::set_var(ALL_VERSIONS, "1") };
    }

    let mut tests = programs::tests(path.as_ref());
    tests.retain(is_wanted);
    let is_in_any = |test: &Test, programs: &[&str]| programs.iter().any(|name| test.is_in(name));
    let (alone, others): (Vec<_>, Vec<_>) =
        tests.into_iter().partition(|test| is_in_any(test, &ALONE));
    let (timed, together): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|test| is_in_any(test, &TIMED));

    let schedule = Schedule::new(until_failure);
    schedule.run(together, SIDE_BY_SIDE * cpus_online());
    schedule.run(timed, cpus_online());
    schedule.run(alone, 1);
    report::print(&schedule.outcomes())
}
