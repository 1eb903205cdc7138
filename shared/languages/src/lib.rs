//! Reads the frames that runtimes of languages keep, from user space.
//!
//! The functions of an interpreted program are not on the native stack. The native stack shows the
//! interpreter, which keeps frames of its own. Each language has a module with a [`Language`],
//! which finds the runtime in a process, reads its frames, and names them. [`interleave()`] merges
//! the frames of any language with native frames.

mod arch;
mod chain;
pub mod hotspot;
pub mod interleave;
mod language;
mod locks;
#[cfg(test)]
mod made;
pub mod php;
mod programs;
mod pthread_values;
pub mod python;
mod reader;
pub mod ruby;
pub mod v8;

use profile::LanguageName;

pub use chain::{Chain, End, Frame, Interrupted};
pub use interleave::interleave;
pub use language::{
    Attached, Class, CodeFrames, Details, File, FoundThread, Function, Inlined, Language, Layout,
    Pieces, Runtime, Thread, ThreadNames,
};
pub use locks::{Locks, Name, Row};
pub use reader::{MemoryPieces, Reader, Shared};

/// All known languages.
pub static LANGUAGES: &[&dyn Language] = &[
    &hotspot::Java,
    &python::Python,
    &php::Php,
    &ruby::Ruby,
    &v8::Node,
];

/// Returns the language with a name. A capture may have a language that is not known.
#[must_use]
pub fn by_name(name: LanguageName) -> Option<&'static dyn Language> {
    let mut known = LANGUAGES.iter().copied();
    known.find(|language| language.name() == name)
}
