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
    /// Address in the machine code of the function, whose `instruction` is then unknown; 0 for an
    /// interpreted function. The address lies within the call that the function makes.
    pub machine_code: u64,
}

/// Interrupted instruction, in code that belongs to the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted {
    /// Address of the instruction.
    pub address: u64,
    /// True if the instruction is in a file, not in memory into which the runtime wrote code.
    pub is_in_file: bool,
    /// True if the instruction is in a native function that the first function of the chain called,
    /// and that has no frame of the language. Its native frame is shown.
    pub is_in_callee: bool,
    /// Address to which the interrupted function returns, if it has no frame yet.
    pub returns_to: Option<u64>,
    /// Function that may be about to make its frame, as a frame that does not exist yet.
    pub begins: Option<Frame>,
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

/// Adds a word to a hash, like `hash_word` of `bpf/include/events.h`.
pub(crate) fn hash_word(hash: u64, word: u64) -> u64 {
    let hash = (hash ^ word).wrapping_mul(0x9fb2_1c65_1e98_df25);
    hash ^ hash >> 29
}

/// Frames of one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Links of the chain, from leaf to root.
    pub links: Vec<Link<Frame>>,
    /// Reason why the chain ended.
    pub end: End,
    /// Interrupted instruction, if the thread was interrupted in code of the runtime.
    pub interrupted: Option<Interrupted>,
}

impl Chain {
    /// Returns a chain without links.
    #[must_use]
    pub fn empty(end: End) -> Chain {
        Chain {
            links: Vec::new(),
            end,
            interrupted: None,
        }
    }
}
