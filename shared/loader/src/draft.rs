//! A profile that is being drawn up.

use std::collections::HashMap;

use bpf::types::COMM_LENGTH;
use profile::{FrameKind, Id, Module, Name, Profile, Unit};

use crate::stacks::NamedPart;

/// A profile, and what in it stands for what a program sent.
pub(crate) struct Draft {
    pub(crate) profile: Profile,
    comms: HashMap<[u8; COMM_LENGTH], Name>,
    /// User stacks and kernel stacks by ID.
    pub(crate) parts: HashMap<u64, NamedPart>,
}

impl Draft {
    pub(crate) fn new(unit: Unit) -> Draft {
        Draft {
            profile: Profile::new(unit),
            comms: HashMap::new(),
            parts: HashMap::new(),
        }
    }

    /// The thread's name that the kernel keeps as `raw`, printable.
    pub(crate) fn comm(&mut self, raw: &[u8; COMM_LENGTH]) -> Name {
        let names = &mut self.profile.names;
        let new = || names.text(&profile::text::comm(raw));
        *self.comms.entry(*raw).or_insert_with(new)
    }

    /// A frame that has been named.
    pub(crate) fn frame(&mut self, frame: &symbolize::Frame) -> Id<profile::Frame> {
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
