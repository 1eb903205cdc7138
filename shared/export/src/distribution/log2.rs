//! Histograms of powers of two, laid out as bcc's cpudist prints them.

use std::io::{self, Write};

use profile::spans::{Distribution, Histogram};

use super::{id_name, unit_name};

/// Maximum rows of the narrow layout. Longer lengths make more rows, and leave less width for
/// stars.
const NARROW_ROWS: usize = 32;

/// Writes one period: an empty line, the time of day if given, and a histogram for each owner. With
/// `summary` average, total and count follow.
///
/// # Errors
/// Returns the errors of `writer`.
pub fn write(
    distribution: &Distribution,
    time: Option<&str>,
    summary: bool,
    writer: &mut dyn Write,
) -> io::Result<()> {
    let unit = unit_name(distribution.scale);
    writeln!(writer)?;
    if let Some(time) = time {
        writeln!(writer, "{time:<8}")?;
    }
    for row in &distribution.rows {
        if let (Some(apart), Some(owner)) = (distribution.apart, &row.owner) {
            write!(writer, "\n{} = {}", id_name(apart), owner.id)?;
            match &owner.comm {
                // bcc prints the name with the newline that it read.
                Some(comm) => writeln!(writer, " {comm}\n")?,
                None => writeln!(writer)?,
            }
        }
        write_histogram(&row.histogram, unit, writer)?;
    }
    let sum = distribution.sum();
    if summary && sum.spans() > 0 {
        let total = sum.total_ns() / distribution.scale.unit_ns();
        let count = sum.spans();
        writeln!(
            writer,
            "\navg = {} {unit}, total: {total} {unit}, count: {count}\n",
            total / count
        )?;
    }
    Ok(())
}

fn write_histogram(histogram: &Histogram, unit: &str, writer: &mut dyn Write) -> io::Result<()> {
    let rows = rows(histogram);
    let most = rows.iter().copied().max().unwrap_or(0);
    let (width, stars) = if rows.len() > NARROW_ROWS {
        (20, 20)
    } else {
        (10, 40)
    };
    if !rows.is_empty() {
        let (indent, label) = (width - 5, width + 9);
        writeln!(
            writer,
            "{:indent$}{unit:<label$} : count     distribution",
            ""
        )?;
    }
    for (power, &count) in rows.iter().enumerate() {
        let low = if power == 0 { 0 } else { 1_u64 << power };
        let high = (2_u64 << power) - 1;
        let bar = "*".repeat((stars * count / most) as usize);
        writeln!(
            writer,
            "{low:>width$} -> {high:<width$} : {count:<8} |{bar:<stars$}|",
            stars = stars as usize
        )?;
    }
    Ok(())
}

/// Returns the number of spans between each power of two and the next. A length of 0 counts as 1.
fn rows(histogram: &Histogram) -> Vec<u64> {
    let mut rows = Vec::new();
    for (number, bucket) in histogram.buckets().filter(|(_, bucket)| bucket.spans > 0) {
        let power = histogram.scale().units(number).max(1).ilog2() as usize;
        if rows.len() <= power {
            rows.resize(power + 1, 0);
        }
        rows[power] += bucket.spans;
    }
    rows
}
