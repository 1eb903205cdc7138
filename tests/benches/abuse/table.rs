//! The table of all faults, as Markdown.

use crate::fault::{Fault, Verdict};

/// What does not fit is on stderr.
const WIDEST: usize = 220;

pub(crate) fn head() -> String {
    "| fault | tool | stated outcome | seen | |\n|---|---|---|---|---|".to_owned()
}

pub(crate) fn row(fault: &Fault, verdict: Verdict, seen: &str) -> String {
    format!(
        "| {} | {} | {} | {} | {} |",
        fault.name,
        fault.tools,
        fault.outcome,
        cell(seen),
        verdict.text()
    )
}

/// One line that leaves the columns alone.
fn cell(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ").replace('|', "/");
    match line.char_indices().nth(WIDEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
