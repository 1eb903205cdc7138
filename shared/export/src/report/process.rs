//! The analysis of a process: every thread, in fixed columns.

use std::io::{self, Write};

use super::columns::{COLUMNS, Column, Sums, cells, legend};
use super::numbers::{count, settings};
use super::table::write_longest;
use super::waits::{gil, held_up, objects, reasons};
use super::{Process, Run, summary};

/// Widths of the columns. Wider cells push the rest to the right.
const WIDTHS: [usize; 13] = [8, 16, 9, 9, 5, 9, 5, 9, 5, 7, 8, 15, 9];

/// Writes every thread of a process, its sums and what is missing.
///
/// # Errors
/// Those of the writer.
pub fn write(run: &Run, process: &Process<'_>, writer: &mut dyn Write) -> io::Result<()> {
    let threads = &process.threads;
    writeln!(writer, "Wall-clock analysis of process {}", process.pid)?;
    writeln!(writer, "Command: {}", process.command)?;
    writeln!(writer, "{}", settings(run))?;
    held_up::write(threads.iter(), false, writer)?;
    writeln!(writer)?;
    let (of_each, of_all) = gil::cells(process, threads).unzip();
    let columns: Vec<&Column> = COLUMNS
        .iter()
        .chain(of_all.is_some().then_some(&gil::COLUMN))
        .collect();
    write_line(columns.iter().map(|column| column.name.to_owned()), writer)?;
    let mut of_each = of_each.into_iter().flatten();
    for row in threads {
        let cells = cells(row.thread, row.role).into_iter();
        write_line(cells.chain(of_each.next()), writer)?;
    }
    let sums = Sums::over(threads.iter().map(|row| row.thread));
    let all = count(threads.len() as u64, "thread");
    let cells = sums.cells("all".to_owned(), all).into_iter();
    write_line(cells.chain(of_all), writer)?;
    writeln!(writer)?;
    for line in legend(columns) {
        writeln!(writer, "{line}")?;
    }
    reasons::write(threads.iter(), writer)?;
    objects::write(threads.iter(), writer)?;
    write_longest(threads, writer)?;
    writeln!(writer)?;
    if process.with_files < threads.len() {
        writeln!(
            writer,
            "Files of their own: the {} that lived longest (--thread-files says how many).",
            count(process.with_files as u64, "thread")
        )?;
    }
    summary::write(run, process, writer)
}

fn write_line(cells: impl Iterator<Item = String>, writer: &mut dyn Write) -> io::Result<()> {
    let mut line = String::new();
    for (index, (cell, width)) in cells.zip(WIDTHS).enumerate() {
        match index {
            0 => line.push_str(&format!("{cell:>width$}")),
            1 => line.push_str(&format!("  {cell:<width$}")),
            _ => line.push_str(&format!(" {cell:>width$}")),
        }
    }
    writeln!(writer, "{line}")
}
