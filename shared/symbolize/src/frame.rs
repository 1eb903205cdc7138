//! What a location reads as.

use std::sync::Arc;

use profile::FrameKind;

/// A location with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Function, or `[module]` or `[unknown]` where no symbol covers the address.
    pub name: Arc<str>,
    /// File name of the ELF file or kernel module that holds the code.
    pub module: Option<Arc<str>>,
    /// Where the code lives.
    pub kind: FrameKind,
}
