//! Outcome of the unwind of a user stack.

use bpf::types::WalkEnd as ProgramsEnd;
use unwind::{End, Walk};

pub(crate) use unwind::End as WalkEnd;

/// End of an unwind, and whether frame pointers were used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Outcome {
    pub(crate) end: End,
    /// True if the unwind found a frame by its frame pointer.
    pub(crate) by_frame_pointer: bool,
}

impl Outcome {
    /// Parses `walk_end` of a program's message. Returns `None` for an unwind by the kernel's
    /// helper, which does not report its end.
    pub(crate) fn from_program(walk_end: u32) -> Option<Outcome> {
        const BY_FRAME_POINTER: u32 = ProgramsEnd::WALK_BY_FRAME_POINTER.0;
        let end = match ProgramsEnd(walk_end & !BY_FRAME_POINTER) {
            ProgramsEnd::WALK_REACHED_ROOT => End::Root,
            ProgramsEnd::WALK_NO_MAPPING => End::NoMapping,
            ProgramsEnd::WALK_READ_FAILED => End::ReadFailed,
            ProgramsEnd::WALK_TOO_DEEP => End::TooDeep,
            ProgramsEnd::WALK_NO_RULE => End::NoRule,
            ProgramsEnd::WALK_32_BIT => End::Code32Bit,
            _ => return None,
        };
        Some(Outcome {
            end,
            by_frame_pointer: walk_end & BY_FRAME_POINTER != 0,
        })
    }
}

impl From<&Walk> for Outcome {
    fn from(walk: &Walk) -> Outcome {
        Outcome {
            end: walk.end,
            by_frame_pointer: walk.by_frame_pointer,
        }
    }
}
