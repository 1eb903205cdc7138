//! Reader for the output of `cpudist --json`.

use rustix::process::Signal;
use serde::Deserialize;

use crate::programs::tool::PATIENCE;
use crate::{Finished, Running, Tool};

/// One interval of the output.
#[derive(Clone, Debug, Deserialize)]
pub struct Interval {
    /// Kind of the spans: `on-cpu`, `off-cpu`, `blocked` or `runq`.
    pub mode: String,
    /// Start of the interval, in ns of CLOCK_MONOTONIC.
    pub start_ns: u64,
    /// End of the interval, in ns of CLOCK_MONOTONIC.
    pub end_ns: u64,
    /// Spans of each owner.
    pub rows: Vec<Row>,
}

/// Spans of one owner.
#[derive(Clone, Debug, Deserialize)]
pub struct Row {
    /// Process ID, with -P.
    pub pid: Option<u32>,
    /// Thread ID, with -L.
    pub tid: Option<u32>,
    /// Name of the owner.
    pub comm: Option<String>,
    /// Number of spans.
    pub count: u64,
    /// Sum of the lengths, in ns.
    pub total_ns: u64,
    /// Longest length, in ns.
    pub max_ns: u64,
    /// 50th percentile of the lengths, in ns.
    pub p50_ns: u64,
    /// 90th percentile of the lengths, in ns.
    pub p90_ns: u64,
    /// 99th percentile of the lengths, in ns.
    pub p99_ns: u64,
    /// Buckets as shortest length in ns, longest length in ns, and number of spans.
    pub buckets: Vec<(u64, u64, u64)>,
}

impl Interval {
    /// Returns the length of the interval, in ns.
    pub fn length_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }

    /// Returns the sum of the lengths of all spans, in ns.
    pub fn total_ns(&self) -> u64 {
        self.rows.iter().map(|row| row.total_ns).sum()
    }

    /// Returns the number of all spans.
    pub fn count(&self) -> u64 {
        self.rows.iter().map(|row| row.count).sum()
    }
}

/// Output of cpudist, with the number of context switches that it missed.
#[derive(Debug)]
pub struct Spans {
    /// Intervals in their order.
    pub intervals: Vec<Interval>,
    /// Number of context switches that the kernel did not show.
    pub lost_switches: u64,
}

impl Spans {
    /// Parses the output of a run with `--json`.
    ///
    /// # Panics
    ///
    /// Panics if the run failed, lost spans or threads, or printed anything else.
    #[track_caller]
    pub fn read(finished: Finished) -> Spans {
        let finished = finished.succeeded();
        let text = String::from_utf8(finished.stdout).expect("UTF-8");
        let intervals = text
            .lines()
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
            })
            .collect();
        // `cpudist: 9,123 spans; lost: 1 switch`
        let mut lines = finished.stderr.lines();
        let summary =
            lines.find_map(|line| line.split_once(" spans; ").or(line.split_once(" span; ")));
        let (_, lost) = summary.unwrap_or_else(|| panic!("no summary: {}", finished.stderr));
        let lost_of = |what: &str| -> u64 {
            let mut parts = lost.trim_start_matches("lost: ").split(", ");
            let part = parts.find_map(|part| part.split_once(&format!(" {what}")));
            part.map_or(0, |(number, _)| number.replace(',', "").parse().unwrap())
        };
        assert_eq!((lost_of("span"), lost_of("thread")), (0, 0), "{lost}");
        Spans {
            intervals,
            lost_switches: lost_of("switch"),
        }
    }

    /// Returns the only interval.
    ///
    /// # Panics
    ///
    /// Panics if there is not exactly one.
    #[track_caller]
    pub fn only(&self) -> &Interval {
        assert_eq!(self.intervals.len(), 1);
        &self.intervals[0]
    }
}

/// Starts cpudist with `arguments` and `--json`, and waits until its window is open.
pub fn watch(arguments: &str) -> Running {
    let tool = Tool::new("cpudist").args(arguments).arg("--json");
    tool.start_measuring()
}

/// Ends cpudist as Ctrl-C does, and parses its output.
#[track_caller]
pub fn close(running: Running) -> Spans {
    running.signal(Signal::INT);
    Spans::read(running.finish_within(PATIENCE))
}
