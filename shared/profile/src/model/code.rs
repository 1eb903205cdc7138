//! Code: frames, their functions, and their modules.

use std::num::NonZeroU32;

use crate::{Id, LanguageName, Name};

/// Environment in which a frame's code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameKind {
    /// User space: an ELF file, the vDSO or JIT-compiled code.
    User,
    /// The kernel and its modules.
    Kernel,
    /// A function that the runtime of a language runs.
    Interpreted(LanguageName),
    /// No code: a frame that a tool adds, such as `[Missed User Stack]`.
    Marker,
}

/// The kind of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ModuleKind {
    /// An executable or a library that programs map.
    File,
    /// The code that the kernel maps into every process.
    Vdso,
    /// Memory into which a program wrote machine code.
    Jit,
    /// The kernel proper.
    Kernel,
    /// A kernel module, or code that the kernel compiled, such as BPF programs.
    KernelModule,
    /// A file from which an interpreter read its program.
    Source,
}

/// A source of code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Module {
    /// Path of a file where it was mapped, as far as it is known. All others have a name in
    /// brackets, as in `perf`: `[vdso]`, `[kernel.kallsyms]`, `[nf_tables]`.
    pub path: Name,
    /// Build ID from the linker, in lower-case hexadecimal digits.
    pub build_id: Option<Name>,
    /// The kind of the module.
    pub kind: ModuleKind,
}

/// A function, as its symbol describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Function {
    /// Name in the source, demangled.
    pub name: Name,
    /// Mangled name, if it differs from `name`.
    pub system_name: Option<Name>,
    /// The source file.
    pub file: Option<Name>,
    /// Line of the source file at which the function begins.
    pub line: Option<NonZeroU32>,
}

/// A frame of a stack. Frames with one address are one row, and so are frames without an
/// address that have one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Printed name: the function, or `[module]` or `[unknown]` if no symbol covers the
    /// address.
    pub name: Name,
    /// Environment in which the code runs.
    pub kind: FrameKind,
    /// Module that contains the code, if it is known.
    pub module: Option<Id<Module>>,
    /// Virtual address, if it was requested and is known: as in the file for files and the
    /// vDSO, as in memory for all others. In a caller's frame it lies within the call, before
    /// the return address.
    pub address: Option<u64>,
    /// The function, if a symbol covers the address.
    pub function: Option<Id<Function>>,
    /// Line in the function's source file.
    pub line: Option<NonZeroU32>,
    /// Bytes between the start of the function and the address.
    pub offset: Option<u64>,
    /// True if the compiler inlined the function into its caller. Both frames have one address.
    pub is_inlined: bool,
}

impl Frame {
    /// Returns a frame with this name and kind, and nothing else known.
    #[must_use]
    pub fn named(name: Name, kind: FrameKind) -> Frame {
        Frame {
            name,
            kind,
            module: None,
            address: None,
            function: None,
            line: None,
            offset: None,
            is_inlined: false,
        }
    }
}
