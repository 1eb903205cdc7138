//! Frames of a language's runtime, which a program sent or user space read.

use std::sync::Arc;

use bpf::types::{CHAIN_ANCHOR, ChainEnd, ChainLink, MixedStack};
use languages::interleave::Link;
use languages::{Chain, End, Frame, Layout};
use process::Process;

/// Frames of a runtime that are to be inserted between native frames.
pub struct InterpretedFrames {
    /// Process that contains the functions of the frames.
    pub process: Process,
    /// Layout of the runtime.
    pub layout: Arc<Layout>,
    /// Chain of frames.
    pub chain: Chain,
}

impl InterpretedFrames {
    /// Returns an empty chain, for a thread that ran again before its runtime was known.
    pub fn not_read(process: Process, layout: Arc<Layout>) -> InterpretedFrames {
        InterpretedFrames {
            process,
            layout,
            chain: Chain::empty(End::NotRead),
        }
    }

    /// Returns the frames that a program sent, read with `layout`; `None` if the message is
    /// malformed.
    pub fn from_event(
        event: &MixedStack,
        links: &[ChainLink],
        layout: Arc<Layout>,
    ) -> Option<InterpretedFrames> {
        let link = |link: &ChainLink| match link.instruction {
            CHAIN_ANCHOR => Link::Anchor(link.code),
            instruction => Link::Frame(Frame {
                code: link.code,
                instruction,
                checksum: link.checksum,
            }),
        };
        Some(InterpretedFrames {
            process: Process {
                pid: event.pid,
                instance: event.instance,
            },
            layout,
            chain: Chain {
                links: links.iter().map(link).collect(),
                end: match ChainEnd(event.end) {
                    ChainEnd::CHAIN_WHOLE => End::Whole,
                    ChainEnd::CHAIN_READ_FAILED => End::ReadFailed,
                    ChainEnd::CHAIN_TOO_DEEP => End::TooDeep,
                    ChainEnd::CHAIN_BROKEN => End::Broken,
                    _ => return None,
                },
            },
        })
    }
}
