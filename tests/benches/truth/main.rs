//! `make truth`: what the tools say, against what is known independently: what
//! programs measured themselves, what the kernel booked, where threads start.
//! Beside it what other profilers say of the same program. One table; exit
//! status 1 when a figure is further off than stated. Words on the command line
//! choose the claims that have one of them in their name.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod blocked;
mod peers;
mod programs;
mod real;
mod runnable;
mod shares;
mod wakers;

use std::env;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use systemscope_tests::Turn;
use systemscope_tests::table::{Table, Verdict};

/// A claim, and what adds its rows.
type Claim = (&'static str, fn(&mut Table));

const CLAIMS: [Claim; 10] = [
    ("time on CPU by function", shares::rows),
    ("time blocked by function", blocked::rows),
    ("time waiting for a CPU", runnable::rows),
    ("who woke whom", wakers::rows),
    ("MariaDB", |table| real::rows(table, &programs::mariadb())),
    ("nginx", |table| real::rows(table, &programs::nginx())),
    ("Redis", |table| real::rows(table, &programs::redis())),
    ("Python", |table| real::rows(table, &programs::python())),
    ("node", |table| real::rows(table, &programs::node())),
    ("Java", |table| real::rows(table, &programs::java())),
];

fn main() -> ExitCode {
    let _turn = Turn::take();
    panic::set_hook(Box::new(|panic| eprintln!("    {panic}")));
    // What cargo adds begins with a dash.
    let words: Vec<String> = env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let mut table = Table::new(&[
        "claim",
        "program",
        "truth",
        "systemscope",
        "stated",
        "others",
    ]);
    for (name, add_rows) in CLAIMS {
        if !words.is_empty() && !words.iter().any(|word| name.contains(word.as_str())) {
            continue;
        }
        eprintln!("==> {name}");
        if catch_unwind(AssertUnwindSafe(|| add_rows(&mut table))).is_err() {
            let cells = [name, "", "", "could not be measured", "", ""];
            table.row(&cells, Verdict::Missed);
        }
    }
    table.finish()
}
