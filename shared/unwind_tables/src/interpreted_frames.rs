//! Frames of a language's runtime, which a program sent or user space read.

use std::sync::Arc;

use bpf::types::{
    CHAIN_ANCHOR, CHAIN_BEGINS, CHAIN_COMPILED, CHAIN_INTERRUPTED, CHAIN_SPAN, ChainEnd, ChainLink,
    MixedStack,
};
use languages::interleave::Link;
use languages::{Chain, End, Frame, Interrupted, Layout};
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
        let mut decoder = Decoder::default();
        Some(InterpretedFrames {
            process: Process {
                pid: event.pid,
                instance: event.instance,
            },
            layout,
            chain: Chain {
                links: links.iter().filter_map(|link| decoder.link(link)).collect(),
                interrupted: decoder.interrupted,
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

/// State of a program's links.
#[derive(Default)]
struct Decoder {
    interrupted: Option<Interrupted>,
    /// Upper bits of addresses in machine code, once they are known.
    upper: Option<u64>,
}

impl Decoder {
    /// Returns what a link stands for; `None` if the link is about other links.
    fn link(&mut self, link: &ChainLink) -> Option<Link<Frame>> {
        let frame = Frame {
            code: link.code,
            instruction: link.instruction,
            checksum: link.checksum,
            machine_code: 0,
        };
        match link.instruction {
            CHAIN_ANCHOR => Some(Link::Anchor(link.code)),
            CHAIN_SPAN => {
                let length = u64::from(link.checksum) * 8;
                Some(Link::Span(link.code.saturating_sub(length), link.code))
            }
            CHAIN_COMPILED => {
                self.upper = Some(link.code);
                None
            }
            CHAIN_INTERRUPTED => {
                match &mut self.interrupted {
                    Some(interrupted) => interrupted.returns_to = Some(link.code),
                    none => {
                        *none = Some(Interrupted {
                            address: link.code,
                            is_in_file: false,
                            is_in_callee: false,
                            returns_to: None,
                            begins: None,
                        });
                    }
                }
                None
            }
            CHAIN_BEGINS => {
                if let Some(interrupted) = &mut self.interrupted {
                    interrupted.begins = Some(Frame {
                        instruction: 0,
                        ..frame
                    });
                }
                None
            }
            negative if negative < 0 && self.upper.is_some() => {
                let upper = self.upper.unwrap_or(0);
                let lower = negative.cast_unsigned() & 0x7fff_ffff;
                let address = upper << 31 | u64::from(lower);
                let is_exact = self.interrupted.is_some_and(|at| at.address == address);
                Some(Link::Frame(Frame {
                    instruction: -1,
                    machine_code: address.saturating_sub(u64::from(!is_exact)),
                    ..frame
                }))
            }
            _ => Some(Link::Frame(frame)),
        }
    }
}
