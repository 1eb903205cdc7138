//! `make truth`: compares what the tools show with independent facts. These are the times that
//! programs measured themselves, the kernel's accounts, and the functions where threads start. The
//! results of other profilers for the same program stand beside them. Prints one table. The exit
//! status is 1 if a figure is further off than stated. Words on the command line choose the claims
//! that have one of them in their name.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr
)]

mod books;
mod changes;
mod jstack;
mod machine_wide;
mod off_cpu;
mod peers;
mod programs;
mod python;
mod real;
mod runtimes;
mod shares;
mod wakers;

use std::process::ExitCode;

use systemscope_tests::parts::{self, Part};

const CLAIMS: [Part; 19] = [
    ("time on CPU by function", shares::rows),
    ("samples of each process", machine_wide::rows),
    ("time blocked by function", off_cpu::blocked::rows),
    ("time waiting for a CPU", off_cpu::runnable::rows),
    ("time in short waits", off_cpu::short_waits::rows),
    ("time running", books::rows),
    ("who woke whom", wakers::rows),
    ("what changed", changes::rows),
    ("time by Python function", python::rows),
    ("time by function of other languages", runtimes::rows),
    ("functions of Java beside jstack", jstack::rows),
    (
        "idle time of threads made for it",
        off_cpu::idleness::scenarios,
    ),
    ("idle time of servers", off_cpu::idleness::servers),
    ("MariaDB", |table| real::rows(table, &programs::mariadb())),
    ("nginx", |table| real::rows(table, &programs::nginx())),
    ("Redis", |table| real::rows(table, &programs::redis())),
    ("Python", |table| real::rows(table, &programs::python())),
    ("node", |table| real::rows(table, &programs::node())),
    ("Java", |table| real::rows(table, &programs::java())),
];

fn main() -> ExitCode {
    let columns = [
        "claim",
        "program",
        "truth",
        "systemscope",
        "stated",
        "others",
    ];
    parts::measure(&columns, &CLAIMS)
}
