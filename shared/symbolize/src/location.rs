//! Locations of addresses.

/// Place of an address, in terms that outlive its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Location {
    /// In an ELF file that the [`Symbolizer`](crate::Symbolizer) keeps open.
    File {
        /// Index of the file.
        file: u32,
        /// Offset in the file, in bytes.
        offset: u64,
    },
    /// In memory that the program wrote its code into.
    Jit {
        /// Index of the process.
        process: u32,
        /// Virtual address.
        address: u64,
    },
    /// In the kernel's vDSO.
    Vdso {
        /// Offset from its start, in bytes.
        offset: u64,
    },
    /// In a file that is known by name only.
    Module {
        /// Index of the name.
        index: u32,
    },
    /// In a program that an interpreter runs.
    Interpreted {
        /// Index of the function.
        function: u32,
        /// Line in its source file; 0 if it is not known.
        line: u32,
    },
    /// In the kernel.
    Kernel {
        /// Address in the kernel.
        address: u64,
    },
    /// In no known mapping.
    Unknown,
}
