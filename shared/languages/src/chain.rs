//! Frames that a runtime keeps of one thread.

use crate::interleave::Link;

/// Call of a function that has not returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Address of the function's code object or method.
    pub code: u64,
    /// Position in the code, in units of the language; negative if the function has not begun.
    pub instruction: i32,
    /// Checksum that distinguishes the function from a later one at the same address.
    pub checksum: u32,
}

/// End of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// The thread does not belong to the runtime.
    NoThread,
    /// The chain ends at the thread's first frame.
    Whole,
    /// Memory could not be read.
    ReadFailed,
    /// The chain has more links than were asked for.
    TooDeep,
    /// The chain has a value that no runtime leaves there.
    Broken,
    /// The chain was not read before the thread ran on.
    NotRead,
}

/// Frames of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Links of the chain, leaf first.
    pub links: Vec<Link<Frame>>,
    /// Reason why the chain has no more links.
    pub end: End,
}

impl Chain {
    /// Returns a chain without links.
    #[must_use]
    pub fn empty(end: End) -> Chain {
        Chain {
            links: Vec::new(),
            end,
        }
    }
}
