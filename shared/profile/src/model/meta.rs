//! What was measured, when, where and with what.

use crate::{Bursts, Text};

/// What a profile's values count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Number of samples.
    Samples,
    /// Nanoseconds of wall-clock time.
    #[default]
    Nanoseconds,
}

/// What drove samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// The event, by perf's name.
    pub event: Text,
    /// How often a sample was taken.
    pub rate: Rate,
}

impl Sampling {
    /// The nanoseconds that a sample stands for, if the event is a clock. Cycles are one
    /// where a frequency is asked for: that many samples come a second, however fast the
    /// CPU is.
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

    /// What a sample stands for: nanoseconds of a clock, and events of others. 1 where it
    /// is not known how many there were from one sample to the next.
    #[must_use]
    pub fn each(&self) -> u64 {
        match (self.nanoseconds(), self.rate) {
            (Some(nanoseconds), _) => nanoseconds,
            (None, Rate::Period(period)) => period,
            (None, Rate::Frequency(_)) => 1,
        }
    }
}

/// How often a sample is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// This many times a second on each CPU.
    Frequency(u64),
    /// Each time that this many events have happened on a CPU; clocks count ns.
    Period(u64),
}

/// The bounds on the lengths of the intervals that all count, both inclusive, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// The shortest.
    pub least: u64,
    /// The longest.
    pub most: u64,
    /// Whether shorter ones than the shortest are sampled: one for each `least` of a thread's
    /// time in them, in each state.
    pub short_are_sampled: bool,
}

/// Why measuring stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// The time asked for had passed.
    #[default]
    Elapsed,
    /// The user ended it.
    Interrupted,
    /// Every process measured had ended.
    TargetGone,
}

/// The span of time that was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// When it began, CLOCK_MONOTONIC, nanoseconds.
    pub start_ns: u64,
    /// The same instant, nanoseconds since 1970 in UTC.
    pub start_utc_ns: u64,
    /// How long it was, nanoseconds.
    pub length_ns: u64,
    /// How long it was to be, nanoseconds; 0 if nobody had said.
    pub requested_ns: u64,
    /// Why it was no longer.
    pub ending: Ending,
}

/// What was measured, when, where and with what. Whatever is not known is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// The program that measured.
    pub tool: Text,
    /// Its version.
    pub tool_version: Text,
    /// Its command line, its own name first.
    pub command_line: Vec<Text>,
    /// The machine's name.
    pub host: Text,
    /// The kernel's release.
    pub kernel: Text,
    /// How many CPUs were online; 0 if that is not known.
    pub cpus: u32,
    /// When.
    pub window: Window,
    /// Who, in words.
    pub targets: Text,
    /// What drove the samples, if these are samples.
    pub sampling: Option<Sampling>,
    /// Which intervals count, if these are intervals.
    pub lengths: Option<Lengths>,
    /// How much more than by chance the time in each state varied, where that is known.
    pub bursts: Vec<Bursts>,
}
