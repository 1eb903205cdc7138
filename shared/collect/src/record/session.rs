//! Runs of objects that count by stack.

mod clock;
mod closing;
mod filter;
mod looks;
pub(crate) mod moves;
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

/// An object that is attached, until it is known what it counted.
pub trait Session {
    /// How soon [`Session::take`] is to be called again. Few events wake user space: see
    /// `can_wait()` of `bpf/include/events.h`.
    fn take_interval(&self) -> Duration;

    /// Opens the window at `start`, and closes it at `stop` if that is known, both on
    /// CLOCK_MONOTONIC, nanoseconds. Nothing that happens in it is missed from now on.
    fn open_window(&mut self, start: u64, stop: Option<u64>);

    /// Waits until `start`, calls `at_start` then, and returns soon after, with what that
    /// returned.
    fn begin<Started>(&mut self, start: u64, at_start: impl FnOnce() -> Started)
    -> Result<Started>;

    /// Nobody was measured before `start`, when the first target came.
    fn first_came(&mut self, start: u64);

    /// A descriptor that is readable when something is to be taken at once.
    fn readiness(&self) -> Result<OwnedFd>;

    /// Takes what has arrived, and moves the window's end if `stop` says so. To be
    /// called again within [`Session::take_interval`].
    fn take(&mut self, stop: Option<u64>) -> Result<()>;

    /// Ends the session, the window having closed at `stop`.
    fn close(self, stop: u64) -> Result<Collected>;
}
