//! The table on the terminal.

use std::io::{self, Write};

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

use super::columns::{COLUMNS, Sums, cells, legend};
use super::numbers::{count, seconds, settings};
use super::waits::{gil, held_up, objects, reasons};
use super::{Process, Row, Run, summary};

/// Writes the first `limit` threads of a process, its sums and what is missing.
///
/// # Errors
/// Those of the writer.
pub fn write(
    run: &Run,
    process: &Process<'_>,
    limit: usize,
    writer: &mut dyn Write,
) -> io::Result<()> {
    let Process {
        pid,
        command,
        threads,
        ..
    } = process;
    writeln!(writer, "Process {pid}: {command}")?;
    writeln!(writer, "{}", settings(run))?;
    held_up::write(threads.iter(), false, writer)?;
    writeln!(writer)?;
    let shown = &threads[..limit.min(threads.len())];
    writeln!(writer, "{}", table(process, shown).trim_fmt())?;
    if shown.len() < threads.len() {
        writeln!(
            writer,
            "({} with less running and runnable time: in the analysis file)",
            count((threads.len() - shown.len()) as u64, "more thread")
        )?;
    }
    writeln!(writer)?;
    let has_gil = gil::cells(process, shown).is_some();
    for line in legend(&COLUMNS).chain(legend(&[gil::COLUMN]).filter(|_| has_gil)) {
        writeln!(writer, "{line}")?;
    }
    reasons::write(threads.iter(), writer)?;
    objects::write(threads.iter(), writer)?;
    write_longest(shown, writer)?;
    writeln!(writer)?;
    summary::write(run, process, writer)
}

fn table(process: &Process<'_>, shown: &[Row<'_>]) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING);
    let (of_each, of_all) = gil::cells(process, shown).unzip();
    let names = COLUMNS.iter().map(|column| column.name);
    let has_gil = of_all.is_some();
    table.set_header(names.chain(has_gil.then_some(gil::COLUMN.name)));
    let mut of_each = of_each.into_iter().flatten();
    for row in shown {
        let cells = cells(row.thread, row.role).into_iter();
        table.add_row(cells.chain(of_each.next()));
    }
    if process.threads.len() > 1 {
        let sums = Sums::over(process.threads.iter().map(|row| row.thread));
        let all = count(process.threads.len() as u64, "thread");
        let cells = sums.cells("all".to_owned(), all).into_iter();
        table.add_row(cells.chain(of_all));
    }
    for column in table.column_iter_mut() {
        column.set_cell_alignment(match column.index {
            1 => CellAlignment::Left,
            _ => CellAlignment::Right,
        });
    }
    table
}

/// The longest blocked stack of each thread that has one.
pub(super) fn write_longest(threads: &[Row<'_>], writer: &mut dyn Write) -> io::Result<()> {
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
                "\nWhere each was blocked longest, idle ones last: seconds in that one stack, innermost call first"
            )?;
        }
        writeln!(
            writer,
            "{:>8} {:<16} {:>9}  {}",
            row.thread.thread.id.tid,
            row.role,
            seconds(longest.time_ns),
            reasons::waited(row.profile, &longest)
        )?;
    }
    Ok(())
}
