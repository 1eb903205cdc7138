//! Flags of a timeline.

use clap::Args;

use super::{RecorderFlags, values};

/// Flags that choose whether a timeline is recorded, and how finely.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Timeline")]
pub struct TimelineFlags {
    /// Record a timeline: the intervals of each thread, with their times
    ///
    /// Implies --states. Formats that show times, such as perfetto, ask for a timeline themselves. A
    /// capture (.scope) holds a timeline only with this flag.
    #[arg(long)]
    pub timeline: bool,

    /// Minimum length of an interval with an entry of its own, in microseconds
    ///
    /// Shorter intervals are joined with the time around them. The joined entry has the time in
    /// each state.
    #[arg(
        long, value_name = "MIN_US", default_value = "100",
        allow_negative_numbers = true, value_parser = values::microseconds
    )]
    pub timeline_min: u64,

    /// Flags of a recorder.
    #[command(flatten)]
    pub recorder: RecorderFlags,
}

impl Default for TimelineFlags {
    fn default() -> TimelineFlags {
        TimelineFlags {
            timeline: false,
            timeline_min: 100,
            recorder: RecorderFlags::default(),
        }
    }
}

impl TimelineFlags {
    /// Returns the flag that asks for a timeline, if one does.
    #[must_use]
    pub fn asking_flag(&self) -> Option<&'static str> {
        let last = self.recorder.last.map(|_| "--last");
        last.or_else(|| self.timeline.then_some("--timeline"))
    }

    /// Returns the minimum length of an interval with an entry of its own, in µs, if a flag asks
    /// for a timeline.
    #[must_use]
    pub fn min_us(&self) -> Option<u64> {
        self.asking_flag().map(|_| self.timeline_min)
    }

    /// Returns the minimum length of an interval with a stack, in µs, if `least_us` is asked for. A
    /// recorder has no stacks of intervals without an entry.
    #[must_use]
    pub fn min_interval_us(&self, least_us: u64) -> u64 {
        match self.recorder.last {
            Some(_) => least_us.max(self.timeline_min),
            None => least_us,
        }
    }

    /// Returns the minimum length of an interval with an entry of its own, in ns.
    #[must_use]
    pub fn least_ns(&self) -> u64 {
        self.timeline_min.saturating_mul(1000)
    }
}
