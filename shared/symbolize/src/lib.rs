//! Addresses → frames.
//!
//! This takes two steps, because the processes that are looked at come and go:
//!
//! 1. [`Symbolizer::locate`] at once, while the process lives: each address
//!    becomes a [`Location`], tied to a file that is kept open, and no longer
//!    needs the process.
//! 2. [`Symbolizer::resolve`] and [`Symbolizer::frames`] when something is to
//!    be printed: symbols are read once for every file.
//!
//! A name is right or absent. A symbol that does not cover an address does not
//! name it; what has no name prints as `[file]` or `[unknown]`, and
//! [`Symbolizer::losses`] says what could not be read.
//!
//! Everything that a profiled program can influence (its files, its paths, its
//! perf map) is taken to be hostile: read with bounds, never mapped, never
//! opened unless it is a regular file.

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
