//! Waiting goroutines of Go programs.
//!
//! No thread waits for a parked goroutine, so the scheduler of the kernel knows nothing about it.
//! [`Sampler`] therefore reads Go's list of all goroutines from the memory of the process, several
//! times a second, and does not stop the process. [`Account`] sums up the samples by stack, and
//! makes a profile of them. The profile is an account beside that of the threads: one second of
//! wall-clock time has one second of every goroutine.
//!
//! The memory of the process is hostile and changes while it is read. Each length has a bound, and
//! a goroutine that changed during the read has no stack.

mod account;
mod layout;
mod memory;
mod program;
mod sample;
mod sampler;
mod versions;

pub use account::{Account, Counts, Line};
pub use program::Error;
pub use sampler::Sampler;
