//! A profile that is being drawn up.

use std::collections::HashMap;

use bpf::types::COMM_LENGTH;
use profile::{Frame, FrameKind, Function, Id, Module, Name, Profile, Translation, Unit};

/// What is told of frames, and of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Names, and nothing of processes: frames that read alike are one.
    Names,
    /// All that is known: frames of one address are one.
    Addresses,
}

/// A profile, and what in it stands for what a program sent.
pub(crate) struct Draft {
    pub(crate) profile: Profile,
    detail: Detail,
    comms: HashMap<[u8; COMM_LENGTH], Name>,
    /// Frames by the places of their locations.
    frames: Vec<Option<Id<Frame>>>,
    /// Of stacks of locations.
    pub(crate) stacks: Translation,
}

impl Draft {
    pub(crate) fn new(unit: Unit, detail: Detail) -> Draft {
        Draft {
            profile: Profile::new(unit),
            detail,
            comms: HashMap::new(),
            frames: Vec::new(),
            stacks: Translation::default(),
        }
    }

    /// The thread's name that the kernel keeps as `raw`, printable.
    pub(crate) fn comm(&mut self, raw: &[u8; COMM_LENGTH]) -> Name {
        let names = &mut self.profile.names;
        let new = || names.text(&profile::text::comm(raw));
        *self.comms.entry(*raw).or_insert_with(new)
    }

    /// The frame of the location at a place, which `name` names.
    pub(crate) fn frame(
        &mut self,
        place: usize,
        name: impl FnOnce() -> symbolize::Frame,
    ) -> Id<Frame> {
        if let Some(Some(frame)) = self.frames.get(place) {
            return *frame;
        }
        let frame = self.add_frame(&name());
        if self.frames.len() <= place {
            self.frames.resize(place + 1, None);
        }
        self.frames[place] = Some(frame);
        frame
    }

    /// A frame that has been named.
    pub(crate) fn add_frame(&mut self, frame: &symbolize::Frame) -> Id<Frame> {
        let Profile {
            names,
            modules,
            functions,
            frames,
            ..
        } = &mut self.profile;
        let name = names.text(&frame.name);
        let named = Frame {
            module: frame.module.as_ref().map(|module| {
                let path = names.text(&module.path);
                let build_id = module.build_id.as_ref().map(|digits| names.text(digits));
                let kind = module.kind;
                modules.id(Module {
                    path,
                    build_id,
                    kind,
                })
            }),
            ..Frame::named(name, frame.kind)
        };
        if self.detail == Detail::Names {
            return frames.id(named);
        }
        let function = frame.has_symbol.then(|| {
            let system_name = frame.system_name.as_ref().map(|name| names.text(name));
            functions.id(Function {
                name,
                system_name,
                file: None,
                line: None,
            })
        });
        frames.id(Frame {
            address: frame.address,
            function,
            ..named
        })
    }

    /// A frame that is not code.
    pub(crate) fn marker(&mut self, name: &str) -> Id<Frame> {
        self.profile.frame(name, FrameKind::Marker)
    }
}
