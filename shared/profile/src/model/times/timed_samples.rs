//! Timed samples: single samples with their time and CPU.

use crate::{Id, Sample, ThreadId};

/// One of the events in a sample's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedSample {
    /// The thread.
    pub thread: ThreadId,
    /// Number of the CPU, as the kernel counts CPUs.
    pub cpu: u32,
    /// Time, in ns of CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// Sample that counts the event.
    pub sample: Id<Sample>,
}
