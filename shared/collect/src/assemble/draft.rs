//! Draft of a profile, to which stacks are added.

use std::collections::HashMap;
use std::num::NonZeroU32;

use bpf::types::COMM_LENGTH;
use profile::{
    Frame, FrameKind, Function, Id, Module, Name, Profile, StackId, Translation, Unit, marker, text,
};
use symbolize::Inlined;

use crate::record::{Detail, KernelName, RuntimeNames};

/// Draft of a profile, with translations from programs' values to rows of the profile.
pub(crate) struct Draft {
    pub(crate) profile: Profile,
    detail: Detail,
    /// True if kernel frames keep their addresses.
    shows_kernel_addresses: bool,
    comms: HashMap<[u8; COMM_LENGTH], Name>,
    /// Frames of the profile, by the index of their location.
    frames: Vec<Option<Id<Frame>>>,
    /// Frames inlined at a frame, outermost first.
    inlined: HashMap<Id<Frame>, Box<[Id<Frame>]>>,
    /// Translation from stacks of locations to stacks of the profile.
    pub(crate) stacks: Translation,
}

impl Draft {
    pub(crate) fn new(unit: Unit, detail: Detail) -> Draft {
        Draft {
            profile: Profile::new(unit),
            detail,
            shows_kernel_addresses: loader::are_kernel_addresses_public(),
            comms: HashMap::new(),
            frames: Vec::new(),
            inlined: HashMap::new(),
            stacks: Translation::default(),
        }
    }

    /// Returns the printable name of a thread.
    pub(crate) fn thread_name(&mut self, names: &RuntimeNames, name: &KernelName) -> Name {
        let own = name.thread.and_then(|thread| names.get(thread, &name.comm));
        match own {
            Some(own) => self.profile.names.id(own.clone()),
            None => self.comm(&name.comm),
        }
    }

    /// Returns the printable form of a thread name in the kernel's format.
    fn comm(&mut self, raw: &[u8; COMM_LENGTH]) -> Name {
        let names = &mut self.profile.names;
        let new = || names.id(profile::text::comm(raw));
        *self.comms.entry(*raw).or_insert_with(new)
    }

    /// Returns the stack in which `callers` call the location with index `place`, including the
    /// functions inlined there. `name` returns the frame of the location.
    pub(crate) fn called(
        &mut self,
        callers: StackId,
        place: usize,
        name: impl FnOnce() -> symbolize::Frame,
    ) -> StackId {
        if let Some(&Some(frame)) = self.frames.get(place) {
            return self.with_inlined(callers, frame);
        }
        let frame = self.frame(&name());
        if self.frames.len() <= place {
            self.frames.resize(place + 1, None);
        }
        self.frames[place] = Some(frame);
        self.with_inlined(callers, frame)
    }

    /// Returns the stack in which `callers` call this named frame, including the functions inlined
    /// there.
    pub(crate) fn called_frame(&mut self, callers: StackId, frame: &symbolize::Frame) -> StackId {
        let frame = self.frame(frame);
        self.with_inlined(callers, frame)
    }

    fn with_inlined(&mut self, callers: StackId, frame: Id<Frame>) -> StackId {
        let stacks = &mut self.profile.stacks;
        let stack = stacks.called(callers, frame);
        let inlined = self.inlined.get(&frame).into_iter().flatten();
        stacks.extend(stack, inlined.copied())
    }

    /// Adds a named frame to the profile, including the functions inlined there.
    fn frame(&mut self, frame: &symbolize::Frame) -> Id<Frame> {
        let id = self.add_frame(frame);
        if !frame.inlined.is_empty() && !self.inlined.contains_key(&id) {
            let outer = self.profile.frames[id];
            let inlined = frame.inlined.iter();
            let inlined = inlined.map(|inlined| self.add_inlined(inlined, outer));
            let inlined = inlined.collect();
            self.inlined.insert(id, inlined);
        }
        id
    }

    fn add_inlined(&mut self, inlined: &Inlined, outer: Frame) -> Id<Frame> {
        let Profile {
            names,
            functions,
            frames,
            ..
        } = &mut self.profile;
        let name = match &inlined.name {
            Some(name) => names.text(&text::function(name)),
            None => names.text(marker::INLINED),
        };
        let system_name = inlined.system_name.as_ref().map(|name| names.text(name));
        let source = inlined.source.as_ref();
        let function = functions.id(Function {
            name,
            system_name,
            file: source.map(|source| names.text(&source.file)),
            line: None,
        });
        frames.id(Frame {
            name,
            function: Some(function),
            line: source.and_then(|source| NonZeroU32::new(source.line)),
            offset: None,
            is_inlined: true,
            ..outer
        })
    }

    fn add_frame(&mut self, frame: &symbolize::Frame) -> Id<Frame> {
        let Profile {
            names,
            modules,
            functions,
            frames,
            ..
        } = &mut self.profile;
        let name = if frame.has_symbol {
            names.text(&text::function(&frame.name))
        } else {
            names.text(&frame.name)
        };
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
        let source = frame.source.as_ref();
        let function = frame.has_symbol.then(|| {
            let system_name = frame.system_name.as_ref().map(|name| names.text(name));
            functions.id(Function {
                name,
                system_name,
                file: source.map(|source| names.text(&source.file)),
                line: NonZeroU32::new(frame.first_line),
            })
        });
        let is_shown = self.shows_kernel_addresses || frame.kind != FrameKind::Kernel;
        frames.id(Frame {
            address: frame.address.filter(|_| is_shown),
            function,
            line: source.and_then(|source| NonZeroU32::new(source.line)),
            offset: frame.offset,
            ..named
        })
    }

    /// Returns a frame that is a marker and not code.
    pub(crate) fn marker(&mut self, name: &str) -> Id<Frame> {
        self.profile.frame(name, FrameKind::Marker)
    }
}
