//! Circumstances of a measurement: tool, machine, window, targets.

use crate::{Bursts, Text};

/// Unit of a profile's values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Number of samples.
    Samples,
    /// Nanoseconds of wall-clock time.
    #[default]
    Nanoseconds,
}

/// Source of samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// Name of the event, as perf spells it.
    pub event: Text,
    /// Rate at which samples were taken.
    pub rate: Rate,
}

impl Sampling {
    /// Returns the ns that a sample stands for, if the event is a clock. CPU cycles count as a
    /// clock if a frequency was requested: the number of samples a second is then fixed, at any
    /// speed of the CPU.
    #[must_use]
    pub fn nanoseconds(&self) -> Option<u64> {
        let is_clock = matches!(&*self.event, "cpu-clock" | "task-clock");
        match self.rate {
            Rate::Period(period) => is_clock.then_some(period),
            Rate::Frequency(frequency) => {
                let is_time = is_clock || matches!(&*self.event, "cpu-cycles" | "cycles");
                1_000_000_000_u64.checked_div(frequency).filter(|_| is_time)
            }
        }
    }

    /// Returns the amount that a sample stands for: ns of a clock, or events. Returns 1 if the
    /// number of events between two samples is unknown.
    #[must_use]
    pub fn each(&self) -> u64 {
        match (self.nanoseconds(), self.rate) {
            (Some(nanoseconds), _) => nanoseconds,
            (None, Rate::Period(period)) => period,
            (None, Rate::Frequency(_)) => 1,
        }
    }
}

/// Rate at which samples are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Samples a second on each CPU.
    Frequency(u64),
    /// Events between two samples on one CPU; clocks count ns.
    Period(u64),
}

/// Bounds on the lengths of measured intervals, both inclusive, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// Minimum length.
    pub least: u64,
    /// Maximum length.
    pub most: u64,
    /// True if intervals shorter than `least` are sampled: in each state, one for each `least`
    /// ns of a thread's time in them.
    pub short_are_sampled: bool,
}

/// Reason why the window ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// The requested time had passed.
    #[default]
    Elapsed,
    /// The user interrupted the tool.
    Interrupted,
    /// Every target had exited.
    TargetGone,
}

/// Span of time that was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Start, in ns of CLOCK_MONOTONIC.
    pub start_ns: u64,
    /// The same instant, in ns since 1970 in UTC.
    pub start_utc_ns: u64,
    /// Length in ns.
    pub length_ns: u64,
    /// Length that the user requested, in ns; 0 if the user gave none.
    pub requested_ns: u64,
    /// Reason why the window ended.
    pub ending: Ending,
}

/// Circumstances of a measurement. Unknown values are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// Name of the program that measured.
    pub tool: Text,
    /// Version of the program.
    pub tool_version: Text,
    /// Command line of the program, its own name first.
    pub command_line: Vec<Text>,
    /// Host name of the machine.
    pub host: Text,
    /// Release of the kernel, such as `6.1.0`.
    pub kernel: Text,
    /// Number of online CPUs; 0 if it is unknown.
    pub cpus: u32,
    /// Window of the measurement.
    pub window: Window,
    /// Human-readable description of the targets.
    pub targets: Text,
    /// Source of the samples; `None` for intervals.
    pub sampling: Option<Sampling>,
    /// Bounds on the lengths of intervals; `None` for samples.
    pub lengths: Option<Lengths>,
    /// Variance of the time in each state, relative to intervals that occur at random.
    pub bursts: Vec<Bursts>,
    /// Minimum length, in ns, of an interval that has a row of its own in the timeline; `None`
    /// without a timeline.
    pub timeline_least_ns: Option<u64>,
}
