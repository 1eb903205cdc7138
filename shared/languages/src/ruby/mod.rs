//! CRuby 3.0 to 3.4.
//!
//! [`find()`] finds the interpreter in a file, and [`layout::by_version`] returns the offsets of
//! its version. [`walk()`] reads the control frames of a thread, and [`read()`] reads the function
//! that a frame runs. A process may forge any of its data. They are read with bounds, and
//! impossible values are left out.

mod function;
mod interpreter;
mod language;
pub mod layout;
mod objects;
mod walk;

pub use function::{RubyFunction, read, read_stopped};
pub use interpreter::{Interpreter, find};
pub use language::Ruby;
pub use layout::{LAYOUTS, Layout};
pub use walk::walk;

#[cfg(test)]
mod tests;
