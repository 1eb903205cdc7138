//! A profile that is being drawn up.

use std::collections::HashMap;

use bpf::types::COMM_LENGTH;
use profile::{FrameKind, Id, Module, Name, Profile, Translation, Unit};

/// A profile, and what in it stands for what a program sent.
pub(crate) struct Draft {
    pub(crate) profile: Profile,
    comms: HashMap<[u8; COMM_LENGTH], Name>,
    /// Frames by the places of their locations.
    frames: Vec<Option<Id<profile::Frame>>>,
    /// Of stacks of locations.
    pub(crate) stacks: Translation,
}

impl Draft {
    pub(crate) fn new(unit: Unit) -> Draft {
        Draft {
            profile: Profile::new(unit),
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
    ) -> Id<profile::Frame> {
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
    pub(crate) fn add_frame(&mut self, frame: &symbolize::Frame) -> Id<profile::Frame> {
        let Profile {
            names,
            modules,
            frames,
            ..
        } = &mut self.profile;
        let module = frame.module.as_ref().map(|module| {
            let name = names.text(module);
            modules.id(Module { name })
        });
        frames.id(profile::Frame {
            name: names.text(&frame.name),
            module,
            kind: frame.kind,
        })
    }

    /// A frame that is not code.
    pub(crate) fn marker(&mut self, name: &str) -> Id<profile::Frame> {
        self.profile.frame(name, FrameKind::Marker)
    }
}
