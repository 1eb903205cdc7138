//! Reasons of waits: why threads waited, on which resource, who held it, and whether the threads
//! had work.
//!
//! [`Objects`] keeps the resources that programs report. [`Reasons`] makes a [`profile::Wait`] of
//! a thread's stack, its resource, and how its wait ended.

mod arch;
mod objects;
mod reasons;

pub use arch::is_interrupt_entry;
pub use objects::{Objects, configure};
pub use reasons::{Place, Reasons, delay_wait};
