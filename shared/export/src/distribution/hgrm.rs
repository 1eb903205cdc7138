//! HdrHistogram's text format of percentiles, which its plotter reads.

use std::io::{self, Write};

use profile::spans::Histogram;

use super::quantiles::recorded;

/// Number of lines per halving of the distance to 100 %, as in HdrHistogram's own tools.
const LINES_PER_HALVING: u32 = 5;

/// Writes the percentiles of all spans, in the histogram's unit.
///
/// # Errors
/// Returns the errors of `writer`.
pub fn write(histogram: &Histogram, writer: &mut dyn Write) -> io::Result<()> {
    let recorded = recorded(histogram).map_err(io::Error::other)?;
    let unit = histogram.scale().unit_ns() as f64;
    writeln!(
        writer,
        "{:>12} {:>14} {:>10} {:>14}\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    )?;
    let mut below = 0;
    for step in recorded.iter_quantiles(LINES_PER_HALVING) {
        below += step.count_since_last_iteration();
        let value = step.value_iterated_to().min(histogram.longest_ns()) as f64 / unit;
        let quantile = step.quantile_iterated_to();
        write!(writer, "{value:>12.3} {quantile:>2.12} {below:>10}")?;
        if quantile < 1.0 {
            writeln!(writer, " {:>14.2}", 1.0 / (1.0 - quantile))?;
        } else {
            writeln!(writer)?;
        }
    }
    let mean = histogram.total_ns() as f64 / histogram.spans().max(1) as f64 / unit;
    writeln!(
        writer,
        "#[Mean    = {mean:>12.3}, StdDeviation   = {:>12.3}]",
        recorded.stdev() / unit
    )?;
    writeln!(
        writer,
        "#[Max     = {:>12.3}, Total count    = {:>12}]",
        histogram.longest_ns() as f64 / unit,
        histogram.spans()
    )?;
    writeln!(
        writer,
        "#[Buckets = {:>12}, SubBuckets     = {:>12}]",
        recorded.buckets(),
        recorded.distinct_values() * 2 / (usize::from(recorded.buckets()) + 1)
    )
}
