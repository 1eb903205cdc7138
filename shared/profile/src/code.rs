//! Code that was seen: frames, and what they are in.

use crate::{Id, Name};

/// Where a frame's code lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameKind {
    /// User space: an ELF file, the vDSO or JIT-compiled code.
    User,
    /// The kernel and its modules.
    Kernel,
    /// Not code: a frame that a tool puts in, such as `[Missed User Stack]`.
    Marker,
}

/// What code was loaded from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Module {
    /// The file's name, or that of the kernel module.
    pub name: Name,
}

/// One frame of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Function, or `[module]` or `[unknown]` where no symbol covers the address.
    pub name: Name,
    /// What holds the code, where that is known.
    pub module: Option<Id<Module>>,
    /// Where the code lives.
    pub kind: FrameKind,
}
