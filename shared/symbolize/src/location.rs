//! Locations of addresses.

/// Place of an address, in a form that outlives its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Location {
    /// In an ELF file that the [`Symbolizer`](crate::Symbolizer) keeps open.
    File {
        /// Index of the file.
        file: u32,
        /// Offset in the file, in bytes.
        offset: u64,
    },
    /// In memory into which the program wrote code.
    Jit {
        /// Index of the process.
        process: u32,
        /// Virtual address.
        address: u64,
    },
    /// In the kernel's vDSO.
    Vdso {
        /// Offset from the start of the vDSO, in bytes.
        offset: u64,
    },
    /// In a file of which only the name is known.
    Module {
        /// Index of the name.
        index: u32,
    },
    /// In a function that an interpreter runs.
    Interpreted {
        /// Index of the function.
        function: u32,
        /// Line in the source file of the function; 0 if it is unknown.
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
