//! PHP 8.1 to 8.4, in builds that are not thread-safe.
//!
//! [`find()`] finds the interpreter in a file, and [`layout::by_api`] returns the offsets of its
//! version. [`walk()`] reads the frames of a process's first thread, and [`read()`] reads the
//! function that a frame runs. A process may forge any of its data. They are read with bounds, and
//! impossible values are left out.

mod function;
mod interpreter;
mod language;
pub mod layout;
mod walk;

pub use function::{PhpFunction, read, read_stopped};
pub use interpreter::{Interpreter, find};
pub use language::Php;
pub use layout::{LAYOUTS, Layout};
pub use walk::walk;

#[cfg(test)]
mod tests;
