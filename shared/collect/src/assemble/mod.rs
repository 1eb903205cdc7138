//! From what was recorded to a profile of named stacks, and what that is worth.

mod diagnostics;
pub(crate) mod draft;
mod naming;
mod stacks;
mod wakers;
mod walks;

pub use diagnostics::Diagnostics;
pub use naming::{Named, WakersShown};
