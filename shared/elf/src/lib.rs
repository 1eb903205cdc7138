//! Reads ELF files, with bounds.
//!
//! Other users made the files: every offset and size in them may be wrong, and a file may shrink
//! while it is read. So nothing is mapped (a file that shrinks under a mapping raises SIGBUS).
//! Each size is checked before memory is allocated for it. A [`Source`] may charge for a read, or
//! refuse it, before the read. The layouts are those of elf(5) and the System V gABI.

pub mod layout;

mod compressed;
mod error;
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
