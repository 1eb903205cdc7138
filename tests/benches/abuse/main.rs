//! `make abuse`: causes faults, and compares their outcomes with the stated ones in one table. The
//! exit status is 1 if an outcome differs. Words on the command line choose the faults that have
//! one of them in their name.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr
)]

mod containers;
mod deaths;
mod disks;
mod fault;
mod leftovers;
mod limits;
mod load;
mod machine;
mod rights;
mod run;
mod targets;

use std::process::ExitCode;
use std::time::Instant;

use systemscope_tests::Turn;
use systemscope_tests::parts::{self, Wanted};
use systemscope_tests::printed::table::Table;

fn main() -> ExitCode {
    let _turn = Turn::take();
    leftovers::adopt_orphans();
    parts::print_panics_briefly();
    let wanted = Wanted::read();
    let families = [
        deaths::FAULTS,
        targets::FAULTS,
        containers::FAULTS,
        rights::FAULTS,
        limits::FAULTS,
        disks::FAULTS,
        machine::FAULTS,
        load::FAULTS,
    ];
    let mut table = Table::new(&["fault", "tool", "stated outcome", "seen"]);
    for fault in families.into_iter().flatten() {
        if !wanted.has(fault.name) {
            continue;
        }
        eprintln!("==> {} ({})", fault.name, fault.tools);
        let begun = Instant::now();
        let (verdict, seen) = fault.inflict();
        eprintln!("    after {:.1} s", begun.elapsed().as_secs_f32());
        let cells = [fault.name, fault.tools, fault.outcome, &seen];
        table.row(&cells, verdict);
    }
    table.finish()
}
