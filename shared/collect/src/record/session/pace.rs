//! Interval at which user space takes messages. Each take wakes an idle CPU, which costs more than
//! the messages themselves.

use std::ops::Range;
use std::time::Duration;

use bpf::ProgramName;
use libbpf_rs::Link;
use loader::{LoadedObject, Result, Targets, Variable, monotonic_ns};

/// Interval between takes. It is short for a while after news. News is a new program, or code
/// without unwind tables.
pub(super) struct Pace<'a> {
    /// Time of the last news that programs reported, in ns of CLOCK_MONOTONIC.
    news_ns: Variable<'a, u64>,
    often: Duration,
    seldom: Duration,
    /// Links of the programs that see new processes.
    _links: Vec<Link>,
}

impl<'a> Pace<'a> {
    /// Default of the long interval.
    pub(super) const SELDOM: Duration = Duration::from_millis(50);
    /// Time after news during which the interval is short, in ns. It is twice NEWS_TOLD_NS of
    /// `bpf/include/news.h`.
    const NEW_NS: u64 = 500_000_000;

    /// Attaches the programs that see new targets, if new targets can appear. The programs that add
    /// targets must be attached before.
    pub(super) fn new(
        object: &'a LoadedObject,
        targets: &Targets,
        intervals: Range<Duration>,
    ) -> Result<Pace<'a>> {
        let programs: &[ProgramName] = if targets.are_all_there() {
            &[]
        } else {
            &[bpf::programs::REPORT_EXEC]
        };
        Ok(Pace {
            news_ns: object.variable(bpf::variables::NEWS_NS)?,
            often: intervals.start,
            seldom: intervals.end,
            _links: object.attach(programs)?,
        })
    }

    /// Returns the time until the next take.
    pub(super) fn interval(&self) -> Duration {
        if monotonic_ns().saturating_sub(self.news_ns.get()) < Pace::NEW_NS {
            self.often
        } else {
            self.seldom
        }
    }
}
