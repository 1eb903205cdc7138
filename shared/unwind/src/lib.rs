//! User stacks without frame pointers.
//!
//! [`build()`] turns what a file says about its frames into a [`Table`], the
//! same bytes that the BPF walker searches.

mod build;
mod cfi;
mod code;
mod columns;
mod elf;
mod error;
mod expression;
mod frame_pointers;
mod go;
mod interpreter;
mod memory;
mod pages;
mod plt;
mod ranges;
mod registers;
mod rule;
mod source;
mod symbols;
mod table;
mod uncovered;
mod walk;

pub use build::{Built, Notes, Segment, build};
pub use error::Error;
pub use frame_pointers::walk_frame_pointers;
pub use memory::{Memory, ProcessMemory};
pub use registers::Registers;
pub use rule::{Rule, cfa, frame_pointer};
pub use source::Source;
pub use table::{PAGE_SIZE, Page, Table};
pub use walk::{AddressSpace, Code, End, Mode, Walk, walk};
