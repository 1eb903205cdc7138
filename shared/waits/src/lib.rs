//! Why threads waited, on what, held by whom, and whether they had work.
//!
//! [`Objects`] keeps what programs say that threads waited on. [`Reasons`] makes a
//! [`profile::Wait`] of a thread's stack, its object, and how its wait ended.

mod arch;
mod objects;
mod reasons;

pub use arch::is_interrupt_entry;
pub use objects::{Objects, configure};
pub use reasons::{Place, Reasons, of_delay};
