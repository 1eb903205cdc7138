//! The frames that a runtime keeps of one thread.

use crate::interleave::Link;

/// A function that was called and has not returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Address of what the function is made of: a code object, a method.
    pub code: u64,
    /// Position in it, in units of the language; negative if it has not begun.
    pub instruction: i32,
    /// Tells the function from another that has its address later.
    pub checksum: u32,
}

/// How a chain ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// The thread is none of the runtime's.
    NoThread,
    /// At the thread's first frame.
    Whole,
    /// Memory could not be read.
    ReadFailed,
    /// There are more links than asked for.
    TooDeep,
    /// A value that no runtime leaves there.
    Broken,
    /// Nobody has read any before the thread went on.
    NotRead,
}

/// A thread's frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Leaf first.
    pub links: Vec<Link<Frame>>,
    /// Why there are no more.
    pub end: End,
}

impl Chain {
    /// A chain without links.
    #[must_use]
    pub fn empty(end: End) -> Chain {
        Chain {
            links: Vec::new(),
            end,
        }
    }
}
