//! User stacks of threads that are not running, walked from outside.
//!
//! The BPF programs walk a thread's stack while it is current. A thread that
//! was blocked before they were attached is never current until it wakes, so
//! its stack is walked here, from the registers with which it entered the
//! kernel and from its process's memory.

mod frame_pointers;
mod memory;

pub use frame_pointers::{Registers, walk_frame_pointers};
pub use memory::{Memory, ProcessMemory};
