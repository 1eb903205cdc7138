//! Time off the CPU: blocked, waiting for a CPU, in short waits, and idle.

pub(crate) mod blocked;
pub(crate) mod idleness;
pub(crate) mod runnable;
pub(crate) mod short_waits;
