//! A Markdown table of claims and their verdicts, with an exit status.

use std::process::ExitCode;

use crate::machine;

/// Maximum characters of a cell. The whole text is on stderr.
const WIDEST: usize = 240;

/// Verdict in the last column of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The claim holds.
    Ok,
    /// The claim does not hold.
    Missed,
    /// This machine cannot check the claim, or was too busy to check it.
    NotHere,
    /// A figure without a claim.
    Figure,
}

impl Verdict {
    /// Returns the verdict on a claim.
    pub fn of(holds: bool) -> Verdict {
        if holds { Verdict::Ok } else { Verdict::Missed }
    }

    /// Returns the verdict on a figure that is corrected for stolen time. `stolen_percent` is the
    /// time that the hypervisor took, in percent of the figure. A figure with more than 5 % stolen
    /// time is `NotHere`.
    pub fn of_calm(stolen_percent: f64, holds: bool) -> Verdict {
        if stolen_percent > 5.0 {
            Verdict::NotHere
        } else {
            Verdict::of(holds)
        }
    }

    fn text(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Missed => "**missed**",
            Verdict::NotHere => "not here",
            Verdict::Figure => "",
        }
    }
}

/// Table that shows each new row on stderr, and prints all rows together at the end.
#[derive(Debug)]
pub struct Table {
    columns: usize,
    lines: Vec<String>,
    stated: usize,
    missed: usize,
}

impl Table {
    /// Creates a table with these columns and a column for the verdict.
    pub fn new(columns: &[&str]) -> Table {
        let head = format!("| {} | |", columns.join(" | "));
        let rule = "|---".repeat(columns.len() + 1) + "|";
        Table {
            columns: columns.len(),
            lines: vec![head, rule],
            stated: 0,
            missed: 0,
        }
    }

    /// Adds a row.
    ///
    /// # Panics
    ///
    /// Panics if the row does not have one cell for each column.
    #[track_caller]
    pub fn row(&mut self, cells: &[&str], verdict: Verdict) {
        assert_eq!(cells.len(), self.columns, "{cells:?}");
        self.stated += usize::from(verdict != Verdict::Figure);
        self.missed += usize::from(verdict == Verdict::Missed);
        eprintln!("    {}  {}", cells.join("  "), verdict.text());
        let cells: Vec<String> = cells.iter().map(|text| cell(text)).collect();
        let line = format!("| {} | {} |", cells.join(" | "), verdict.text());
        self.lines.push(line);
    }

    /// Prints the table with a line about the machine. Returns failure if a claim was missed.
    pub fn finish(self) -> ExitCode {
        println!("{}\n", machine::line());
        for line in &self.lines {
            println!("{line}");
        }
        println!("\n{} of {} missed", self.missed, self.stated);
        ExitCode::from(u8::from(self.missed > 0))
    }
}

/// Returns a text on one line, without `|` and cut to [`WIDEST`] characters.
fn cell(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ").replace('|', "/");
    match line.char_indices().nth(WIDEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_fails_with_one_row() {
        let mut table = Table::new(&["what", "seen"]);
        table.row(&["a|b", "1\n2"], Verdict::Figure);
        table.row(&["c", "3"], Verdict::of(true));
        assert_eq!(
            table.lines,
            [
                "| what | seen | |",
                "|---|---|---|",
                "| a/b | 1 2 |  |",
                "| c | 3 | ok |"
            ]
        );
        assert_eq!((table.stated, table.missed), (1, 0));
        table.row(&["d", "4"], Verdict::of(false));
        assert_eq!(table.finish(), ExitCode::FAILURE);
    }
}
