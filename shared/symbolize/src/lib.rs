//! Addresses → frames.
//!
//! This takes two steps, because the processes that are looked at come and go:
//!
//! 1. [`Symbolizer::locate`] at once, while the process lives: each address
//!    becomes a [`Location`], tied to a file that is kept open, and no longer
//!    needs the process.
//! 2. [`Symbolizer::resolve`] and [`Symbolizer::frames`] when something is to
//!    be printed: symbols are read once for every file.
//!
//! A name is right or absent. A symbol that does not cover an address does not
//! name it; what has no name prints as `[file]` or `[unknown]`, and
//! [`Symbolizer::losses`] says what could not be read.
//!
//! Everything that a profiled program can influence (its files, its paths, its
//! perf map) is taken to be hostile: read with bounds, never mapped, never
//! opened unless it is a regular file.

mod arch;
mod budget;
mod code;
mod elf;
mod frame;
mod lines;
mod losses;
mod naming;
mod process;
pub mod readers;
mod symbolizer;

pub use code::{CodeMapping, CodeSource};
pub use frame::{Frame, Inlined, Module, Source};
pub use losses::Losses;
pub use naming::interpreted::Interpreted;
pub use naming::kernel::AskKernel;
pub use naming::sources::Sources;
pub use naming::variables::{Data, Variable};
pub use symbolizer::Symbolizer;

/// Where an address is, in terms that outlive its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Location {
    /// In an ELF file that the [`Symbolizer`] keeps open.
    File {
        /// Which file.
        file: u32,
        /// Offset in the file, in bytes.
        offset: u64,
    },
    /// In memory that the program wrote its code into.
    Jit {
        /// Which process.
        process: u32,
        /// The address.
        address: u64,
    },
    /// In the kernel's vDSO.
    Vdso {
        /// Offset from its start, in bytes.
        offset: u64,
    },
    /// In a file of which only the name is known.
    Module {
        /// Which name.
        index: u32,
    },
    /// In a program that an interpreter runs.
    Interpreted {
        /// Which function.
        function: u32,
        /// The line in its source file; 0 if it is not known.
        line: u32,
    },
    /// In the kernel.
    Kernel {
        /// The address.
        address: u64,
    },
    /// In nothing that was mapped when we looked.
    Unknown,
}
