//! The parts of a table that is measured: which of them were asked for, and one
//! that fails does not take the others along.

use std::env;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use crate::Turn;
use crate::table::{Table, Verdict};

/// A part of a table: its name, and what adds its rows.
pub type Part = (&'static str, fn(&mut Table));

/// What was asked for on the command line, by words of names.
#[derive(Debug)]
pub struct Wanted(Vec<String>);

impl Wanted {
    /// Reads the command line. What cargo adds to it begins with a dash.
    pub fn read() -> Wanted {
        let words = env::args().skip(1);
        Wanted(words.filter(|word| !word.starts_with('-')).collect())
    }

    /// Whether a name has one of the words, or there are none.
    pub fn has(&self, name: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|word| name.contains(word.as_str()))
    }
}

/// Has panics told without the way there: what is missed is no bug of ours.
pub fn tell_panics_briefly() {
    panic::set_hook(Box::new(|panic| eprintln!("    {panic}")));
}

/// Measures the parts that were asked for, and prints them as one table. Failure
/// when a row was missed or a part could not be measured.
pub fn measure(columns: &[&str], parts: &[Part]) -> ExitCode {
    let _turn = Turn::take();
    tell_panics_briefly();
    let wanted = Wanted::read();
    let mut table = Table::new(columns);
    for (name, add_rows) in parts {
        if !wanted.has(name) {
            continue;
        }
        eprintln!("==> {name}");
        if catch_unwind(AssertUnwindSafe(|| add_rows(&mut table))).is_err() {
            let mut cells = vec![""; columns.len()];
            cells[0] = name;
            cells[1] = "could not be measured";
            table.row(&cells, Verdict::Missed);
        }
    }
    table.finish()
}
