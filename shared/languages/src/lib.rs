//! Frames that languages' runtimes keep, as user space reads them.
//!
//! The functions of an interpreted program are not on the native stack: it shows
//! the interpreter instead, which keeps frames of its own. A module for each
//! language is a [`Language`]: it finds the runtime in a process, walks its frames, and names
//! them. [`interleave()`] puts frames of any language where they belong between the native ones.

mod chain;
pub mod interleave;
mod language;
mod locks;
pub mod python;

pub use chain::{Chain, End, Frame};
pub use interleave::interleave;
pub use language::{Attached, File, Function, Language, Layout, Pieces, Runtime};
pub use locks::{Locks, Name, Row};

/// All languages that are known.
pub static LANGUAGES: &[&dyn Language] = &[&python::Python];
