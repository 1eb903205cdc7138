//! `make bench`: measures the costs of the tools and of comparable profilers, and prints one table.
//! Figures that the table compares are measured in turn, in one run. The exit status is 1 if a bound
//! is missed. Words on the command line choose the parts that have one of them in their name.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod database;
mod figures;
mod hooks;
mod languages;
mod sampling;
mod switches;
mod tool;
mod wallclock;

use std::process::ExitCode;

use systemscope_tests::parts::{self, Part};

const PARTS: [Part; 19] = [
    ("a context switch, perf bench sched pipe", switches::pipe),
    ("a context switch with -p", switches::pipe_watched),
    ("hackbench", switches::messaging),
    ("a hook off CPU", hooks::off_cpu),
    ("a hook on CPU", hooks::on_cpu),
    ("what is waited on", hooks::reasons),
    ("cpudist's hooks", hooks::cpudist),
    ("frames of languages", languages::frames),
    ("a process without a runtime", languages::without_runtimes),
    ("transactions of MariaDB", database::transactions),
    ("requests to a server in Python", languages::requests),
    ("a program that computes", sampling::throughput),
    ("the tools' own time", tool::building::own_time),
    ("wallclock", wallclock::share_of_a_cpu),
    ("start and end", tool::start_and_end::times),
    ("a command from start to end", tool::commands::times),
    ("unwind tables", tool::tables::build),
    ("formats", tool::formats::written),
    ("the page", tool::page::speed),
];

fn main() -> ExitCode {
    parts::measure(&["what", "tool", "measured", "depends on", "bound"], &PARTS)
}
