//! Reader for what `cpudist --json` prints.

use rustix::process::Signal;
use serde::Deserialize;

use crate::programs::tool::PATIENCE;
use crate::{Finished, Running, Tool};

/// One interval.
#[derive(Clone, Debug, Deserialize)]
pub struct Interval {
    /// What a span is.
    pub mode: String,
    /// When it began, CLOCK_MONOTONIC.
    pub start_ns: u64,
    /// When it ended, CLOCK_MONOTONIC.
    pub end_ns: u64,
    /// Whose spans.
    pub rows: Vec<Row>,
}

/// One owner's spans.
#[derive(Clone, Debug, Deserialize)]
pub struct Row {
    /// With -P.
    pub pid: Option<u32>,
    /// With -L.
    pub tid: Option<u32>,
    /// Its name.
    pub comm: Option<String>,
    /// How many.
    pub count: u64,
    /// All together.
    pub total_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// Half are at most as long.
    pub p50_ns: u64,
    /// Nine tenths are.
    pub p90_ns: u64,
    /// 99 of 100 are.
    pub p99_ns: u64,
    /// Shortest, longest, how many.
    pub buckets: Vec<(u64, u64, u64)>,
}

impl Interval {
    /// How long it was.
    pub fn length_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }

    /// The time in all spans.
    pub fn total_ns(&self) -> u64 {
        self.rows.iter().map(|row| row.total_ns).sum()
    }

    /// The number of all spans.
    pub fn count(&self) -> u64 {
        self.rows.iter().map(|row| row.count).sum()
    }
}

/// What cpudist printed, and said of what it is worth.
#[derive(Debug)]
pub struct Spans {
    /// One after another.
    pub intervals: Vec<Interval>,
    /// Context switches that the kernel did not show.
    pub lost_switches: u64,
}

impl Spans {
    /// Reads what a run with `--json` left.
    ///
    /// # Panics
    ///
    /// When it failed, lost spans or threads, or printed anything else.
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
        let last = finished.stderr.lines().last().unwrap_or_default();
        let lost = |what: &str| -> u64 {
            let words: Vec<&str> = last.split([' ', ',']).collect();
            let number = words.iter().rposition(|word| *word == what);
            number
                .and_then(|index| words.get(index.checked_sub(1)?)?.parse().ok())
                .unwrap_or_else(|| panic!("no {what} in {last:?}"))
        };
        assert_eq!((lost("spans"), lost("threads")), (0, 0), "{last}");
        Spans {
            intervals,
            lost_switches: lost("switches"),
        }
    }

    /// The only interval.
    #[track_caller]
    pub fn only(&self) -> &Interval {
        assert_eq!(self.intervals.len(), 1);
        &self.intervals[0]
    }
}

/// cpudist with `arguments` and `--json`, its window open.
pub fn watch(arguments: &str) -> Running {
    let tool = Tool::new("cpudist").args(arguments).arg("--json");
    tool.start_measuring()
}

/// Ends it as Ctrl-C does, and reads what it printed.
#[track_caller]
pub fn close(running: Running) -> Spans {
    running.signal(Signal::INT);
    Spans::read(running.finish_within(PATIENCE))
}
