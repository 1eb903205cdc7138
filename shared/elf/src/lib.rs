//! Reads ELF files, with bounds.
//!
//! Other users made the files. Every offset and size in a file may be wrong, and the file may
//! shrink during a read. This crate maps no file, because a file that shrinks under a mapping
//! raises SIGBUS. It checks each size before it allocates memory for it. A [`Source`] may charge
//! for a read, or refuse it, before the read. The layouts are those of elf(5) and the System V
//! gABI.

pub mod layout;

mod compressed;
mod error;
mod go;
mod headers;
mod links;
mod lookup;
mod reader;
mod sections;
mod segments;
mod source;
mod symbols;

pub use error::Error;
pub use headers::Header;
pub use layout::Fields;
pub use links::find_build_id;
pub use reader::Elf;
pub use sections::Section;
pub use segments::{Segment, Segments};
pub use source::Source;
pub use symbols::{Symbol, SymbolTable};
