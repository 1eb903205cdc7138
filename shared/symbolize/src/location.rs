//! Where an address is.

/// Where an address is, in terms that outlive its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Location {
    /// In an ELF file that the [`Symbolizer`](crate::Symbolizer) keeps open.
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
