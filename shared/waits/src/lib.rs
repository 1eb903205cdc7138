//! Finds why threads waited: reasons, resources and lock holders. Also decides whether the waiting
//! threads had work.
//!
//! [`Objects`] stores the resources that programs report. [`Reasons`] makes a [`profile::Wait`]
//! from a thread's stack, its resource, and the end of its wait.

mod arch;
mod objects;
mod reasons;

pub use arch::is_interrupt_entry;
pub use objects::{Objects, Runtimes, configure};
pub use reasons::{Place, Reasons, delay_wait};
