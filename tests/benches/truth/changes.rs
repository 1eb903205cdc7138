//! Changes that `systemscope diff` reports for programs that have not changed, and for programs
//! that have changed by a known amount.

use std::path::Path;

use serde_json::Value;
use systemscope_tests::printed::table::{Table, Verdict};
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{Tool, Workload};

const PAIRS: usize = 20;
const MAX_CALLED_CHANGED: f64 = 2.0;
/// Measured seconds of each run of a pair, and of each run in which a change must be found.
const OF_A_PAIR: &str = "5";
const TO_FIND: &str = "30";

pub(crate) fn rows(table: &mut Table) {
    unchanged(table);
    let more = [
        (
            "10",
            "0",
            "a function with 30 % of the time, 10 % slower",
            "first_part",
            "running",
        ),
        (
            "0",
            "20",
            "a lock held for 20 % longer",
            "wait_for_lock",
            "blocked",
        ),
    ];
    for (burn, hold, what, function, state) in more {
        check_found(table, [burn, hold], what, (function, state));
    }
}

/// Compares all functions in pairs of runs of the same program.
fn unchanged(table: &mut Table) {
    let (mut functions, mut changed) = (0, 0);
    for _ in 0..PAIRS {
        let rows = diff([["0", "0"]; 2], OF_A_PAIR);
        functions += rows.len();
        for row in rows.iter().filter(|row| row["significant"] == true) {
            eprintln!("called changed: {row}");
            changed += 1;
        }
    }
    let percent = changed as f64 * 100.0 / functions as f64;
    let cells = [
        "what is called changed of what has not changed",
        &format!("{PAIRS} pairs of runs of {OF_A_PAIR} s at 999 Hz"),
        "1 % of functions and states, at the level of 99 %",
        &format!("{changed} of {functions}, {percent:.1} %"),
        &format!("at most {MAX_CALLED_CHANGED} %"),
        "none tells",
    ];
    table.row(&cells, Verdict::of(percent <= MAX_CALLED_CHANGED));
}

/// Checks that the change of a function that takes longer is reported.
fn check_found(table: &mut Table, more: [&str; 2], what: &str, (function, state): (&str, &str)) {
    let rows = diff([["0", "0"], more], TO_FIND);
    let row = rows
        .iter()
        .find(|row| row["function"] == function && row["state"] == state);
    let row = row.unwrap_or_else(|| panic!("there is no row for {function}: {rows:?}"));
    let number = |name: &str| row[name].as_f64().expect("a number") / 1e6;
    let (before, after) = (number("before"), number("after"));
    let is_found = row["significant"] == true && after > before;
    let cells = [
        "what is called changed of what has changed",
        &format!("{what}, {TO_FIND} s at 999 Hz"),
        "it is",
        &format!(
            "{} standard deviations: {before:.1} to {after:.1} ms a second",
            ((after - before) / number("deviation")).round()
        ),
        "found",
        "none tells",
    ];
    table.row(&cells, Verdict::of(is_found));
}

/// Returns the functions of two runs with their changes.
fn diff(runs: [[&str; 2]; 2], seconds: &str) -> Vec<Value> {
    let folder = scratch();
    let files = ["before.scope", "after.scope"].map(|name| folder.path().join(name));
    for (more, file) in runs.iter().zip(&files) {
        measure(*more, seconds, file);
    }
    let tool = Tool::new("systemscope").args("diff --format json");
    let finished = tool.arg(&files[0]).arg(&files[1]).run().succeeded();
    let mut object: Value = serde_json::from_slice(&finished.stdout).expect("JSON");
    match object["functions"].take() {
        Value::Array(rows) => rows,
        other => panic!("no functions: {other}"),
    }
}

fn measure(more: [&str; 2], seconds: &str, file: &Path) {
    let workload = Workload::start("shifts", &more);
    let tool = Tool::new("wallclock").arg(workload.pid().to_string());
    let tool = tool.args("-f 999 -m 1 -d").arg(seconds).arg("-o");
    tool.arg(file).run().succeeded();
}
