//! Turns addresses into frames.
//!
//! This takes two steps, because the observed processes come and go:
//!
//! 1. [`Symbolizer::locate`] runs at once, while the process lives. It turns each address into a
//!    [`Location`], which refers to a file that is kept open, and no longer needs the process.
//! 2. [`Symbolizer::resolve`] and [`Symbolizer::frames`] run when frames are to be printed.
//!    Symbols are read once for every file.
//!
//! A name is right or absent. A symbol names only the addresses that it covers. A location
//! without a name prints as `[file]` or `[unknown]`, and [`Symbolizer::losses`] returns what
//! could not be read.
//!
//! The files, the paths and the perf map of a target are treated as hostile, and so is all else
//! that it can influence. They are read with bounds, never mapped, and never opened unless they
//! are regular files.

mod arch;
mod budget;
mod charged;
mod code;
mod frame;
mod lines;
mod location;
mod losses;
mod naming;
mod process;
pub mod readers;
mod symbolizer;

pub use code::{CodeMapping, CodeSource};
pub use frame::{Frame, Inlined, Module, Source};
pub use location::Location;
pub use losses::Losses;
pub use naming::files::sources::Sources;
pub use naming::files::variables::{Data, Variable};
pub use naming::interpreted::Interpreted;
pub use naming::kernel::AskKernel;
pub use symbolizer::Symbolizer;
