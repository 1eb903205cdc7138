//! The analysis of a process: every thread, in fixed columns.

use std::io::{self, Write};

use export::text::numbers::{count, seconds};

use super::columns::{COLUMNS, EXPLAINED, Sums, cells};
use super::waits::{gil, objects, reasons, work};
use super::{Process, Row, Run, summary};
use crate::settings::settings;

/// Widths of the columns. Wider cells push the rest to the right.
const WIDTHS: [usize; 13] = [8, 16, 9, 9, 5, 9, 5, 9, 5, 7, 8, 15, 9];

/// Writes every thread of a process, the sums and the losses.
///
/// # Errors
/// Returns the errors of `writer`.
pub fn write(run: &Run, process: &Process<'_>, writer: &mut dyn Write) -> io::Result<()> {
    let threads = &process.threads;
    writeln!(writer, "Wall-clock analysis of process {}", process.pid)?;
    writeln!(writer, "Command: {}", process.command)?;
    writeln!(writer, "{}", settings(run))?;
    writeln!(writer)?;
    work::write(threads.iter(), false, writer)?;
    writeln!(writer)?;
    let (of_each, of_all) = gil::cells(process, threads).unzip();
    let columns = COLUMNS.into_iter();
    let columns = columns.chain(of_all.is_some().then_some(gil::COLUMN));
    write_line(columns.map(str::to_owned), writer)?;
    let mut of_each = of_each.into_iter().flatten();
    for row in threads {
        let cells = cells(row.thread, row.role).into_iter();
        write_line(cells.chain(of_each.next()), writer)?;
    }
    let sums = Sums::over(threads.iter().map(|row| row.thread));
    let all = count(threads.len() as u64, "thread");
    let cells = sums.cells("all".to_owned(), all).into_iter();
    write_line(cells.chain(of_all), writer)?;
    writeln!(writer, "{EXPLAINED}")?;
    reasons::write(threads.iter(), writer)?;
    objects::write(threads.iter(), writer)?;
    write_longest(threads, writer)?;
    writeln!(writer)?;
    if process.with_files < threads.len() {
        writeln!(
            writer,
            "Files of their own: the {} with the longest lives (--thread-files).",
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

/// Writes the longest blocked stack of each thread that has one.
fn write_longest(threads: &[Row<'_>], writer: &mut dyn Write) -> io::Result<()> {
    let mut begun = false;
    let longest = threads.iter().filter_map(|row| {
        let longest = row.thread.longest_blocked(row.profile)?;
        Some((row, longest))
    });
    let (idle, held_up): (Vec<_>, Vec<_>) = longest.partition(|(_, longest)| longest.is_idle());
    for (row, longest) in held_up.into_iter().chain(idle) {
        if !begun {
            begun = true;
            writeln!(
                writer,
                "\nLongest blocked stack of each thread, idle ones last (seconds; innermost function first)"
            )?;
        }
        writeln!(
            writer,
            "{:>8} {:<16} {:>9}  {}",
            row.thread.thread.id.tid,
            row.role,
            seconds(longest.time_ns),
            reasons::describe_stack(row.profile, &longest)
        )?;
    }
    Ok(())
}
