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

use crate::record::Collected;

pub use clock::ClockSession;
pub use filter::{OffCpuFilter, ThreadKind};
pub use sampling::SamplingSession;

/// Attached object, until its counts are collected.
pub trait Session {
    /// Returns the maximum time until the next call of [`Session::take`]. Few events wake user
    /// space: see `can_wait()` of `bpf/include/events.h`.
    fn take_interval(&self) -> Duration;

    /// Opens the window at `start`, and closes it at `stop` if that is known, both in ns of
    /// CLOCK_MONOTONIC. From now on no event inside the window is missed.
    fn open_window(&mut self, start: u64, stop: Option<u64>);

    /// Waits until `start`, calls `at_start`, and returns its result soon after.
    fn begin<Started>(&mut self, start: u64, at_start: impl FnOnce() -> Started)
    -> Result<Started>;

    /// Notes that the first target appeared at `start`, and that none was measured before.
    fn note_first_target(&mut self, start: u64);

    /// Returns a descriptor that is readable when messages should be taken at once.
    fn readiness(&self) -> Result<OwnedFd>;

    /// Takes the messages that have arrived, and moves the window's end to `stop` if that is
    /// known. Call it again within [`Session::take_interval`].
    fn take(&mut self, stop: Option<u64>) -> Result<()>;

    /// Ends the session after the window closed at `stop`.
    fn close(self, stop: u64) -> Result<Collected>;
}
