//! CPython, versions 3.8 to 3.14.
//!
//! [`find()`] finds the interpreter in a file, and [`layout::by_version`] returns the offsets of
//! its version. [`walk()`] reads the frames of a thread, and [`read()`] reads the code object that
//! a frame runs. A process may forge any of its data. They are read with bounds, and impossible
//! values are left out.

mod code;
mod interpreter;
mod language;
pub mod layout;
pub mod lines;
mod locks;
mod text;
mod walk;

pub use crate::chain::{Chain, End, Frame};
pub use crate::language::Pieces;
pub use code::{CodeObject, checksum, read, read_stopped};
pub use interpreter::{Interpreter, Version, find};
pub use language::Python;
pub use layout::{Anchoring, LAYOUTS, Layout};
pub use walk::walk;

#[cfg(test)]
mod tests;
