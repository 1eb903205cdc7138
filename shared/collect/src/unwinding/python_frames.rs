//! Python frames of a stack, which a program sent or which were read from the interpreter.

use bpf::types::{MixedStack, PYTHON_ANCHOR, PythonEnd, PythonLink};
use languages::interleave::Link;
use languages::python::{Chain, End, Frame, Layout, Version, layout};
use process::Process;

/// Python frames that are to be put between native ones.
pub(crate) struct PythonFrames {
    /// Where their functions are.
    pub(crate) process: Process,
    pub(crate) layout: &'static Layout,
    pub(crate) chain: Chain,
}

impl PythonFrames {
    /// Those of a thread that went on before anybody knew of its interpreter.
    pub(crate) fn not_read(process: Process, layout: &'static Layout) -> PythonFrames {
        PythonFrames {
            process,
            layout,
            chain: Chain {
                links: Vec::new(),
                end: End::NotRead,
            },
        }
    }

    /// As a program sent them; `None` if it sent what it should not.
    pub(crate) fn from_event(event: &MixedStack, links: &[PythonLink]) -> Option<PythonFrames> {
        let link = |link: &PythonLink| match link.instruction {
            PYTHON_ANCHOR => Link::Anchor(link.code),
            instruction => Link::Frame(Frame {
                code: link.code,
                instruction,
                checksum: link.checksum,
            }),
        };
        Some(PythonFrames {
            process: Process {
                pid: event.pid,
                instance: event.instance,
            },
            layout: layout_of(event.layout)?,
            chain: Chain {
                links: links.iter().map(link).collect(),
                end: match PythonEnd(event.end) {
                    PythonEnd::PYTHON_WHOLE => End::Whole,
                    PythonEnd::PYTHON_READ_FAILED => End::ReadFailed,
                    PythonEnd::PYTHON_TOO_DEEP => End::TooDeep,
                    PythonEnd::PYTHON_BROKEN => End::Broken,
                    _ => return None,
                },
            },
        })
    }
}

/// The layout that a program went by.
pub(crate) fn layout_of(minor: u32) -> Option<&'static Layout> {
    layout::of(Version {
        major: 3,
        minor: u8::try_from(minor).ok()?,
        free_threaded: false,
    })
}
