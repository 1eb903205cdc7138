//! Chain of the frames that a runtime keeps for one thread.

use crate::interleave::Link;

/// Call of a function that has not returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Address of the code object or method of the function.
    pub code: u64,
    /// Position in the code, in units of the language; negative if the function has not begun.
    pub instruction: i32,
    /// Checksum that distinguishes the function from a later one at the same address.
    pub checksum: u32,
}

/// Reason why a chain ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// The thread does not belong to the runtime.
    NoThread,
    /// The chain ends at the first frame of the thread.
    Whole,
    /// Memory could not be read.
    ReadFailed,
    /// The chain has more links than the caller wants.
    TooDeep,
    /// The chain has a value that no runtime writes there.
    Broken,
    /// The thread ran again before the chain was read.
    NotRead,
}

/// Frames of one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Links of the chain, from leaf to root.
    pub links: Vec<Link<Frame>>,
    /// Reason why the chain ended.
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

/// Adds a word to a hash, like `hash_word` of `bpf/include/events.h`.
pub(crate) fn hash_word(hash: u64, word: u64) -> u64 {
    let hash = (hash ^ word).wrapping_mul(0x9fb2_1c65_1e98_df25);
    hash ^ hash >> 29
}
