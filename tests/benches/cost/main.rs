//! `make bench`: what the tools cost, and others that do the same. Everything
//! that is compared is measured in turn, in one run. One table; exit status 1
//! when a bound is missed. Words on the command line choose the parts that have
//! one of them in their name.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod database;
mod figures;
mod hooks;
mod sampling;
mod start_and_end;
mod switches;
mod tables;
mod wallclock;

use std::env;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use systemscope_tests::Turn;
use systemscope_tests::table::{Table, Verdict};

/// A part of the table: its name, and what adds its rows.
type Part = (&'static str, fn(&mut Table));

const PARTS: [Part; 11] = [
    ("a context switch, perf bench sched pipe", switches::pipe),
    ("a context switch with -p", switches::pipe_watched),
    ("hackbench", switches::messaging),
    ("a hook off CPU", hooks::off_cpu),
    ("a hook on CPU", hooks::on_cpu),
    ("cpudist's hooks", hooks::cpudist),
    ("transactions of MariaDB", database::transactions),
    ("a program that computes", sampling::throughput),
    ("wallclock", wallclock::share_of_a_cpu),
    ("start and end", start_and_end::times),
    ("unwind tables", tables::build),
];

fn main() -> ExitCode {
    let _turn = Turn::take();
    panic::set_hook(Box::new(|panic| eprintln!("    {panic}")));
    // What cargo adds begins with a dash.
    let words: Vec<String> = env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let mut table = Table::new(&["what", "tool", "measured", "bound"]);
    for (name, add_rows) in PARTS {
        if !words.is_empty() && !words.iter().any(|word| name.contains(word.as_str())) {
            continue;
        }
        eprintln!("==> {name}");
        if catch_unwind(AssertUnwindSafe(|| add_rows(&mut table))).is_err() {
            table.row(&[name, "", "could not be measured", ""], Verdict::Missed);
        }
    }
    table.finish()
}
