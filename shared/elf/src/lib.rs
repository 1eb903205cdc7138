//! ELF files, read with bounds.
//!
//! The files belong to others: every offset and size in them may be a lie, and files may
//! shrink while they are read. So nothing is mapped (a file that shrinks under a mapping
//! raises SIGBUS), each size is checked before memory is taken for it, and a [`Source`] may
//! charge or refuse each read before it is done. Layouts are those of elf(5) and the System V
//! gABI.

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
