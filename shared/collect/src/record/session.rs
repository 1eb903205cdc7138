//! Sessions of objects that count by stack.

mod clock;
mod closing;
mod filter;
pub(crate) mod moves;
mod pace;
pub(crate) mod pre_existing;
mod returns;
mod sampling;
mod unseen_departures;

use std::os::fd::OwnedFd;
use std::time::Duration;

use loader::Result;

use crate::record::{Collected, Collector, RowSink};

pub use clock::ClockSession;
pub use filter::{OffCpuFilter, ThreadKind};
pub use sampling::SamplingSession;

/// Attached object whose counts are being collected.
pub trait Session {
    /// Returns the maximum time until the next call of [`Session::take`]. Few events wake user
    /// space (`can_wait()` of `bpf/include/events.h`).
    fn take_interval(&self) -> Duration;

    /// Opens the window at `start`, and closes it at `stop` if that is known. Both are in ns of
    /// CLOCK_MONOTONIC. Programs miss no event inside the window from here on.
    fn open_window(&mut self, start: u64, stop: Option<u64>);

    /// Waits until `start`, calls `at_start`, and returns the result of `at_start` soon after.
    fn begin<Started>(&mut self, start: u64, at_start: impl FnOnce() -> Started)
    -> Result<Started>;

    /// Notes that the first target appeared at `start`, and that programs measured no target
    /// before.
    fn note_first_target(&mut self, start: u64);

    /// Returns a descriptor that is readable when user space should take messages at once.
    fn readiness(&self) -> Result<OwnedFd>;

    /// Takes the messages that have arrived. Moves the window's end to `stop` if that is known. The
    /// next call is due within [`Session::take_interval`].
    fn take(&mut self, stop: Option<u64>) -> Result<()>;

    /// Passes the rows of the timeline to `sink` as they come, instead of keeping them.
    fn stream_timeline(&mut self, sink: RowSink);

    /// Calls `body` with the collector of what programs report.
    fn with_collector(&mut self, body: &mut dyn FnMut(&mut Collector<'_>));

    /// Ends the session. The window must have closed at `stop`.
    fn close(self, stop: u64) -> Result<Collected>;
}
