//! Unwinds user stacks without frame pointers.
//!
//! [`build()`] makes a [`Table`] from the call frame information of a file. The unwind in BPF
//! searches the same bytes.

mod arch;
mod build;
mod cfi;
mod error;
mod ranges;
mod rule;
mod table;
mod walk;

pub use build::{Built, Notes, build};
pub use error::Error;
pub use rule::{Rule, cfa, frame_pointer};
pub use table::{PAGE_SIZE, Page, Table};
pub use walk::frame_pointers::walk_frame_pointers;
pub use walk::generated::{CodeFrame, GeneratedCode, NoGeneratedCode, Step};
pub use walk::memory::Memory;
pub use walk::registers::Registers;
pub use walk::{AddressSpace, Code, End, Mode, Walk, walk, walk_through};
