//! How often user space looks what programs have sent: each look costs a CPU that was idle
//! more than what is there to be taken.

use std::ops::Range;
use std::time::Duration;

use bpf::ProgramName;
use libbpf_rs::Link;
use loader::{LoadedObject, Result, Targets, Variable, monotonic_ns};

/// What wakes for something new, and looks often after that.
pub(super) struct Looks<'a> {
    /// When there was news that was told of, CLOCK_MONOTONIC, nanoseconds.
    news_ns: Variable<'a, u64>,
    often: Duration,
    seldom: Duration,
    /// What sees programs that begin.
    _links: Vec<Link>,
}

impl<'a> Looks<'a> {
    /// How often is seldom, where nothing else asks for more.
    pub(super) const SELDOM: Duration = Duration::from_millis(50);
    /// For how long news is new: twice NEWS_TOLD_NS of `bpf/include/news.h`, nanoseconds.
    const NEW_NS: u64 = 500_000_000;

    /// Has programs see who is new among the targets, if anybody can be. To be called once
    /// those are attached that make targets of them.
    pub(super) fn new(
        object: &'a LoadedObject,
        targets: &Targets,
        intervals: Range<Duration>,
    ) -> Result<Looks<'a>> {
        let programs: &[ProgramName] = match targets.are_all_there() {
            true => &[],
            false => &[bpf::programs::REPORT_EXEC],
        };
        Ok(Looks {
            news_ns: object.variable(bpf::variables::NEWS_NS)?,
            often: intervals.start,
            seldom: intervals.end,
            _links: object.attach(programs)?,
        })
    }

    /// How soon to look again.
    pub(super) fn interval(&self) -> Duration {
        match monotonic_ns().saturating_sub(self.news_ns.get()) < Looks::NEW_NS {
            true => self.often,
            false => self.seldom,
        }
    }
}
