//! The analysis of a process: every thread, in fixed columns.

use std::io::{self, Write};

use super::columns::{COLUMNS, Sums, cells, legend};
use super::numbers::{count, settings};
use super::table::write_longest;
use super::{Process, Run, held_up, objects, reasons, summary};

/// Widths of the columns. Wider cells push the rest to the right.
const WIDTHS: [usize; 12] = [8, 16, 9, 9, 5, 9, 5, 9, 5, 7, 8, 15];

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
    write_line(
        &COLUMNS.each_ref().map(|column| column.name.to_owned()),
        writer,
    )?;
    for row in threads {
        write_line(&cells(row.thread, row.role), writer)?;
    }
    let sums = Sums::over(threads.iter().map(|row| row.thread));
    let all = count(threads.len() as u64, "thread");
    write_line(&sums.cells("all".to_owned(), all), writer)?;
    writeln!(writer)?;
    for line in legend(&COLUMNS) {
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

fn write_line(cells: &[String; 12], writer: &mut dyn Write) -> io::Result<()> {
    let mut line = String::new();
    for (index, (cell, width)) in cells.iter().zip(WIDTHS).enumerate() {
        match index {
            0 => line.push_str(&format!("{cell:>width$}")),
            1 => line.push_str(&format!("  {cell:<width$}")),
            _ => line.push_str(&format!(" {cell:>width$}")),
        }
    }
    writeln!(writer, "{line}")
}
