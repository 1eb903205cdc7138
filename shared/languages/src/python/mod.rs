//! CPython, 3.8 to 3.14.
//!
//! [`find()`] tells a file that has an interpreter, [`layout::of`] where that version
//! keeps what, [`walk()`] reads a thread's frames, and [`read()`] what a frame runs.
//! Everything that is read of a process may have been forged: it is bounded, and
//! what cannot be right is left out.

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
