//! A table of percentiles, a row for each owner.

use std::io::{self, Write};

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use profile::spans::{Distribution, Row, Scale};

use super::id_name;
use super::quantiles::recorded;

/// Names of the percentiles in the table, with their values in per cent.
const PERCENTILES: [(&str, f64); 4] =
    [("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p99.9", 99.9)];

/// Writes one period: an empty line, the time of day if given, and the table.
///
/// # Errors
/// Returns the errors of `writer`.
pub fn write(
    distribution: &Distribution,
    time: Option<&str>,
    writer: &mut dyn Write,
) -> io::Result<()> {
    writeln!(writer)?;
    if let Some(time) = time {
        writeln!(writer, "{time:<8}")?;
    }
    let unit = match distribution.scale {
        Scale::Microseconds => "us",
        Scale::Milliseconds => "ms",
    };
    let mut table = Table::new();
    table.load_style(NOTHING);
    let names = PERCENTILES.iter().map(|(name, _)| *name);
    let times = names.chain(["max", "mean", "total"]);
    let owner = distribution.apart.map(|apart| [id_name(apart), "comm"]);
    let header = owner
        .iter()
        .flatten()
        .map(|name| (*name).to_owned())
        .chain(times.map(|name| format!("{name}/{unit}")))
        .chain(["count".to_owned()]);
    table.set_header(header);
    for row in &distribution.rows {
        table.add_row(cells(row, distribution)?);
    }
    for column in table.column_iter_mut() {
        column.set_cell_alignment(match (column.index, owner) {
            (1, Some(_)) => CellAlignment::Left,
            _ => CellAlignment::Right,
        });
    }
    writeln!(writer, "{}", table.trim_fmt())
}

fn cells(row: &Row, distribution: &Distribution) -> io::Result<Vec<String>> {
    let histogram = &row.histogram;
    let recorded = recorded(histogram).map_err(io::Error::other)?;
    let unit = distribution.scale.unit_ns() as f64;
    let mean = histogram.total_ns() as f64 / histogram.spans().max(1) as f64;
    let times = PERCENTILES
        .iter()
        .map(|&(_, percentile)| recorded.value_at_percentile(percentile))
        .map(|ns| ns.min(histogram.longest_ns()) as f64)
        .chain([
            histogram.longest_ns() as f64,
            mean,
            histogram.total_ns() as f64,
        ]);
    let mut cells = Vec::new();
    if let (Some(_), Some(owner)) = (distribution.apart, &row.owner) {
        cells.push(owner.id.to_string());
        cells.push(owner.comm.clone().unwrap_or_default());
    }
    cells.extend(times.map(|ns| number(ns / unit)));
    cells.push(histogram.spans().to_string());
    Ok(cells)
}

/// Formats a number with at least three significant digits; 0 has one.
fn number(value: f64) -> String {
    let decimals = match value {
        0.0 | 100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        0.1.. => 3,
        0.01.. => 4,
        0.001.. => 5,
        _ => 6,
    };
    format!("{value:.decimals$}")
}
