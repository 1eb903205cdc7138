//! Code that was seen: frames, the functions that they are in, and the files.

use std::num::NonZeroU32;

use crate::{Id, LanguageName, Name};

/// Where a frame's code lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameKind {
    /// User space: an ELF file, the vDSO or JIT-compiled code.
    User,
    /// The kernel and its modules.
    Kernel,
    /// A function that the runtime of a language runs.
    Interpreted(LanguageName),
    /// Not code: a frame that a tool puts in, such as `[Missed User Stack]`.
    Marker,
}

/// What a module is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ModuleKind {
    /// A file that programs map: an executable or a library.
    File,
    /// The code that the kernel maps into every process.
    Vdso,
    /// Memory that a program wrote its code into.
    Jit,
    /// The kernel proper.
    Kernel,
    /// A kernel module, or code that the kernel compiled, such as BPF programs.
    KernelModule,
    /// A file that an interpreter read its program from.
    Source,
}

/// What code was loaded from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Module {
    /// A file's path where it was mapped, as far as it is known; of others a name in
    /// brackets, as `perf` writes it: `[vdso]`, `[kernel.kallsyms]`, `[nf_tables]`.
    pub path: Name,
    /// The build ID that its linker gave it, in lower-case hexadecimal digits.
    pub build_id: Option<Name>,
    /// What it is.
    pub kind: ModuleKind,
}

/// A function, as its symbol tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Function {
    /// As a programmer knows it.
    pub name: Name,
    /// As the linker knows it, where that differs: the mangled name.
    pub system_name: Option<Name>,
    /// The source file.
    pub file: Option<Name>,
    /// The line in it where the function begins.
    pub line: Option<NonZeroU32>,
}

/// One frame of a stack. Frames of one address are one, and so are those without an
/// address of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// As it prints: the function, or `[module]` or `[unknown]` where no symbol covers
    /// the address.
    pub name: Name,
    /// Where the code lives.
    pub kind: FrameKind,
    /// What holds the code, where that is known.
    pub module: Option<Id<Module>>,
    /// Where that was asked for and is known: of a file and of the vDSO the virtual
    /// address that the file itself gives, of others that in memory. Of a call it is
    /// an address in the call, not the one that it returns to.
    pub address: Option<u64>,
    /// The function, where a symbol covers the address.
    pub function: Option<Id<Function>>,
    /// The line in its source file.
    pub line: Option<NonZeroU32>,
    /// How far the address is from where the function begins, in bytes.
    pub offset: Option<u64>,
    /// Whether the compiler put the function into that of the frame that calls it: both
    /// are at one address.
    pub is_inlined: bool,
}

impl Frame {
    /// A frame of which nothing is known but this.
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
