//! One JSON object per period, on a line of its own. Times are in ns.

use std::io::{self, Write};

use profile::spans::{Apart, Distribution, Kind, Row};
use serde::Serialize;

use super::quantiles::recorded;

#[derive(Serialize)]
struct Interval<'a> {
    mode: &'static str,
    unit: &'static str,
    /// Start of the period, in ns of CLOCK_MONOTONIC.
    start_ns: u64,
    end_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<&'a str>,
    rows: Vec<Spans<'a>>,
}

#[derive(Serialize)]
struct Spans<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comm: Option<&'a str>,
    count: u64,
    total_ns: u64,
    max_ns: u64,
    p50_ns: u64,
    p90_ns: u64,
    p99_ns: u64,
    #[serde(rename = "p99.9_ns")]
    p999_ns: u64,
    /// Buckets, each as its shortest length and longest length in ns, and its number of spans.
    buckets: Vec<(u64, u64, u64)>,
}

/// Writes one period, with the time of day at its end if given.
///
/// # Errors
/// Returns the errors of `writer`.
pub fn write(
    distribution: &Distribution,
    time: Option<&str>,
    writer: &mut dyn Write,
) -> io::Result<()> {
    let interval = Interval {
        mode: match distribution.kind {
            Kind::Running => "on-cpu",
            Kind::OffCpu => "off-cpu",
            Kind::Blocked => "blocked",
            Kind::Runnable => "runq",
        },
        unit: "ns",
        start_ns: distribution.start_ns,
        end_ns: distribution.end_ns,
        time,
        rows: distribution
            .rows
            .iter()
            .map(|row| spans(row, distribution.apart))
            .collect::<io::Result<_>>()?,
    };
    serde_json::to_writer(&mut *writer, &interval)?;
    writeln!(writer)
}

fn spans(row: &Row, apart: Option<Apart>) -> io::Result<Spans<'_>> {
    let histogram = &row.histogram;
    let recorded = recorded(histogram).map_err(io::Error::other)?;
    let percentile = |p| recorded.value_at_percentile(p).min(histogram.longest_ns());
    let id = |wanted| {
        let owner = row.owner.as_ref().filter(|_| apart == Some(wanted));
        owner.map(|owner| owner.id)
    };
    Ok(Spans {
        pid: id(Apart::Processes),
        tid: id(Apart::Threads),
        comm: row.owner.as_ref().and_then(|owner| owner.comm.as_deref()),
        count: histogram.spans(),
        total_ns: histogram.total_ns(),
        max_ns: histogram.longest_ns(),
        p50_ns: percentile(50.0),
        p90_ns: percentile(90.0),
        p99_ns: percentile(99.0),
        p999_ns: percentile(99.9),
        buckets: histogram
            .buckets()
            .map(|(number, bucket)| {
                let (first, last) = histogram.scale().bounds_ns(number);
                (first, last, bucket.spans)
            })
            .collect(),
    })
}
