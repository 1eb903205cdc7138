//! `run-tests PROGRAMS [WORD…]`: runs every test of the programs that cargo has
//! built, each in a process of its own, and says at the end what machine it was,
//! which tests took longest, and which had to try again.
//!
//! PROGRAMS is what `cargo test --no-run --message-format json` printed. Words
//! choose the tests that have one of them in their name.
//!
//! Most tests wait most of the time, and run side by side. Those of the programs
//! in [`ALONE`] measure the machine, and run one at a time when the others are done.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod outcome;
mod programs;
mod report;
mod schedule;

use std::env;
use std::process::ExitCode;

use systemscope_tests::cpus_online;

use programs::Test;

/// The programs whose tests have the machine to themselves.
const ALONE: [&str; 2] = ["alone", "collect::hidden_switches"];
/// For each CPU: tests that wait leave it to those that do not.
const SIDE_BY_SIDE: usize = 3;

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let path = arguments.next().expect("what cargo printed, as a file");
    let words: Vec<String> = arguments.collect();
    let is_wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word));

    let mut tests = programs::tests(path.as_ref());
    tests.retain(|test| is_wanted(&test.name));
    let is_alone = |test: &Test| ALONE.iter().any(|program| test.is_of(program));
    let (alone, together): (Vec<_>, Vec<_>) = tests.into_iter().partition(is_alone);

    let mut outcomes = schedule::run(together, SIDE_BY_SIDE * cpus_online());
    outcomes.extend(schedule::run(alone, 1));
    report::print(&outcomes)
}
