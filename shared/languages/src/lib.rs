//! Frames that the runtimes of languages keep, read from user space.
//!
//! The functions of an interpreted program are not on the native stack. The native stack shows
//! the interpreter instead, which keeps frames of its own. The module of each language has a
//! [`Language`]: it finds the runtime in a process, walks its frames, and names them.
//! [`interleave()`] merges the frames of any language with the native ones.

mod chain;
pub mod interleave;
mod language;
mod locks;
pub mod python;

pub use chain::{Chain, End, Frame};
pub use interleave::interleave;
pub use language::{Attached, File, Function, Language, Layout, Pieces, Runtime};
pub use locks::{Locks, Name, Row};

/// All known languages.
pub static LANGUAGES: &[&dyn Language] = &[&python::Python];
