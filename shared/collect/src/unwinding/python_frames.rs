//! Python frames of a stack, which a program sent or which were read from the interpreter.

use bpf::types::{MixedStack, PYTHON_ANCHOR, PythonEnd, PythonLink};
use languages::interleave::Link;
use languages::python::{Chain, End, Frame, Layout, Version, layout};
use symbolize::Process;

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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_as_a_program_sent_them() {
        let links = [
            PythonLink {
                code: 0x1000,
                instruction: 7,
                checksum: 9,
            },
            PythonLink {
                code: 0x7ff0,
                instruction: PYTHON_ANCHOR,
                checksum: 0,
            },
        ];
        let event = |end: u32, layout| MixedStack {
            pid: 3,
            instance: 4,
            layout,
            end,
            ..MixedStack::default()
        };
        for (end, expected) in [
            (PythonEnd::PYTHON_WHOLE, End::Whole),
            (PythonEnd::PYTHON_READ_FAILED, End::ReadFailed),
            (PythonEnd::PYTHON_TOO_DEEP, End::TooDeep),
            (PythonEnd::PYTHON_BROKEN, End::Broken),
        ] {
            let frames = PythonFrames::from_event(&event(end.0, 11), &links).unwrap();
            let process = Process {
                pid: 3,
                instance: 4,
            };
            assert_eq!(frames.process, process);
            assert_eq!((frames.layout.minor, frames.chain.end), (11, expected));
            let frame = Frame {
                code: 0x1000,
                instruction: 7,
                checksum: 9,
            };
            let expected = [Link::Frame(frame), Link::Anchor(0x7ff0)];
            assert_eq!(frames.chain.links, expected);
        }
        // What it should not send.
        assert!(PythonFrames::from_event(&event(99, 11), &links).is_none());
        for layout in [3, 300] {
            let event = event(PythonEnd::PYTHON_WHOLE.0, layout);
            assert!(PythonFrames::from_event(&event, &links).is_none());
        }
    }
}
