//! Flags of a timeline.

use clap::Args;

use super::values;

/// Flags that choose whether a timeline is recorded, and how finely.
#[derive(Args, Clone, Copy, Debug)]
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
}

impl Default for TimelineFlags {
    fn default() -> TimelineFlags {
        TimelineFlags {
            timeline: false,
            timeline_min: 100,
        }
    }
}

impl TimelineFlags {
    /// Returns the minimum length of an interval with an entry of its own, in µs, if `--timeline`
    /// is given.
    #[must_use]
    pub fn min_us(&self) -> Option<u64> {
        self.timeline.then_some(self.timeline_min)
    }

    /// Returns the minimum length of an interval with an entry of its own, in ns.
    #[must_use]
    pub fn least_ns(&self) -> u64 {
        self.timeline_min.saturating_mul(1000)
    }
}
