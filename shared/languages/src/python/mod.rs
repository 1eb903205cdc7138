//! CPython, 3.8 to 3.14.
//!
//! [`find()`] tells a file that has an interpreter, [`layout::of`] where that version
//! keeps what, [`walk()`] reads a thread's frames, and [`read()`] what a frame runs.
//! Everything that is read of a process may have been forged: it is bounded, and
//! what cannot be right is left out.

mod code;
mod interpreter;
pub mod layout;
pub mod lines;
mod text;
mod walk;

pub use code::{CodeObject, Pieces, checksum, read, read_stopped};
pub use interpreter::{Interpreter, Version, find};
pub use layout::{Anchoring, LAYOUTS, Layout};
pub use walk::{Chain, End, Frame, walk};

#[cfg(test)]
mod tests;
