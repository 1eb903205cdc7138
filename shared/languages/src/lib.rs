//! What user space knows of interpreters' frames.
//!
//! The functions of an interpreted program are not on the native stack: it shows
//! the interpreter instead, which keeps frames of its own. A module for each
//! language finds the interpreter in a process, walks its frames, and names them;
//! [`interleave()`] puts them where they belong between the native ones.

pub mod interleave;
pub mod python;

pub use interleave::interleave;
