//! Assembles a profile of named stacks, with diagnostics, from recorded data.

mod diagnostics;
pub(crate) mod draft;
mod naming;
mod stacks;
mod timeline;
mod trigger;
mod wakers;
mod walks;

pub use diagnostics::Diagnostics;
pub use naming::{Named, WakersShown};
pub use trigger::{Fired, Verdicts};
