//! Turns addresses into frames with names.
//!
//! Processes come and go, so this takes two steps:
//!
//! 1. [`Symbolizer::locate`] runs at once, while the process lives. It turns each address into a
//!    [`Location`], which refers to a file that is kept open, and no longer needs the process.
//! 2. [`Symbolizer::resolve`] and [`Symbolizer::frames`] run when frames are to be printed.
//!    Symbols of each file are read once.
//!
//! A name is right or absent. A symbol names only the addresses that it covers. A location without
//! a name is printed as `[file]` or `[unknown]`. [`Symbolizer::losses`] returns counts of data that
//! could not be read.
//!
//! The files, the paths and the perf map of a target are hostile, and so is everything else that
//! the target can influence. This crate reads them with bounds, never maps them, and opens only
//! regular files.

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
mod remote;
mod symbolizer;

pub use code::{CodeMapping, CodeSource};
pub use frame::{Frame, Inlined, Module, Source};
pub use location::Location;
pub use losses::Losses;
pub use naming::files::sources::Sources;
pub use naming::files::variables::{Data, Variable};
pub use naming::interpreted::Interpreted;
pub use naming::kernel::AskKernel;
pub use remote::{DebugFiles, FindBuildId};
pub use symbolizer::Symbolizer;
