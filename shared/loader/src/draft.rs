//! A profile that is being drawn up.

use std::collections::HashMap;

use bpf::types::COMM_LENGTH;
use profile::{FrameKind, Id, Module, Name, Profile, StackId, Unit};

/// A profile, and what in it stands for what a program sent.
pub(crate) struct Draft {
    pub(crate) profile: Profile,
    comms: HashMap<[u8; COMM_LENGTH], Name>,
    /// Frames by the places of their locations.
    frames: Vec<Option<Id<profile::Frame>>>,
    /// Stacks by the places of those of locations.
    stacks: Vec<Option<StackId>>,
}

impl Draft {
    pub(crate) fn new(unit: Unit) -> Draft {
        Draft {
            profile: Profile::new(unit),
            comms: HashMap::new(),
            frames: Vec::new(),
            stacks: Vec::new(),
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
        put(&mut self.frames, place, frame);
        frame
    }

    /// The stack that a stack of locations is here, if that is known.
    pub(crate) fn stack(&self, stack: StackId) -> Option<StackId> {
        self.stacks.get(stack.index()).copied().flatten()
    }

    /// Says which one it is.
    pub(crate) fn put_stack(&mut self, stack: StackId, named: StackId) {
        put(&mut self.stacks, stack.index(), named);
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

fn put<T: Clone>(column: &mut Vec<Option<T>>, place: usize, value: T) {
    if column.len() <= place {
        column.resize(place + 1, None);
    }
    column[place] = Some(value);
}
