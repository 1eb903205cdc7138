//! Timed samples: when a sample was taken, and on which CPU.

use crate::{Id, Sample, ThreadId};

/// One of the events that make up a sample's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedSample {
    /// The thread.
    pub thread: ThreadId,
    /// The CPU that it ran on, as the kernel numbers CPUs.
    pub cpu: u32,
    /// When, nanoseconds of CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// The sample that counts the event.
    pub sample: Id<Sample>,
}
