//! A profile that is being drawn up.

use std::collections::HashMap;
use std::num::NonZeroU32;

use bpf::types::COMM_LENGTH;
use profile::{Frame, FrameKind, Function, Id, Module, Name, Profile, StackId, Translation, Unit};
use symbolize::Inlined;

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
    /// What is inlined into frames there, the outermost first.
    inlined: HashMap<Id<Frame>, Box<[Id<Frame>]>>,
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
            inlined: HashMap::new(),
            stacks: Translation::default(),
        }
    }

    /// The thread's name that the kernel keeps as `raw`, printable.
    pub(crate) fn comm(&mut self, raw: &[u8; COMM_LENGTH]) -> Name {
        let names = &mut self.profile.names;
        let new = || names.text(&profile::text::comm(raw));
        *self.comms.entry(*raw).or_insert_with(new)
    }

    /// The stack in which `callers` call the location at a place, which `name` names,
    /// and that what is inlined there.
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

    /// The same of a frame that has been named.
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

    /// A frame that has been named, and what is inlined there.
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
        let name = names.text(&inlined.name);
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
        frames.id(Frame {
            address: frame.address,
            function,
            line: source.and_then(|source| NonZeroU32::new(source.line)),
            offset: frame.offset,
            ..named
        })
    }

    /// A frame that is not code.
    pub(crate) fn marker(&mut self, name: &str) -> Id<Frame> {
        self.profile.frame(name, FrameKind::Marker)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use profile::ModuleKind;
    use symbolize::Source;

    use super::*;

    /// A function at an address, in whose place the compiler has put others.
    fn frame(name: &str, address: u64, inlined: &[&str]) -> symbolize::Frame {
        let source = |line| {
            let file = "a.c".into();
            Some(Source { file, line })
        };
        let inlined = inlined.iter().zip(20..).map(|(name, line)| Inlined {
            name: (*name).into(),
            system_name: Some(format!("_{name}").into()),
            source: source(line),
        });
        symbolize::Frame {
            name: name.into(),
            has_symbol: true,
            system_name: Some(format!("_{name}").into()),
            offset: Some(address % 16),
            module: Some(Arc::new(symbolize::Module {
                path: "/lib/a.so".into(),
                name: "a.so".into(),
                build_id: Some("0a".into()),
                kind: ModuleKind::File,
            })),
            address: Some(address),
            kind: FrameKind::User,
            source: source(10),
            first_line: 9,
            inlined: inlined.collect(),
        }
    }

    fn names(draft: &Draft, stack: StackId) -> Vec<&str> {
        let profile = &draft.profile;
        let frames = profile.frames_of(stack);
        frames.map(|frame| &*profile.names[frame.name]).collect()
    }

    #[test]
    fn a_place_is_named_once_with_what_is_inlined_there() {
        let mut draft = Draft::new(Unit::Samples, Detail::Addresses);
        let main = draft.called(StackId::EMPTY, 1, || frame("main", 16, &[]));
        let leaf = draft.called(main, 5, || frame("read", 32, &["parse", "next"]));
        assert_eq!(names(&draft, leaf), ["main", "read", "parse", "next"]);
        let again = draft.called(main, 5, || unreachable!());
        assert_eq!(again, leaf);
        let by_frame = draft.called_frame(main, &frame("read", 32, &["parse", "next"]));
        assert_eq!(by_frame, leaf);
        let other = draft.called(leaf, 3, || frame("free", 48, &[]));
        assert_eq!(names(&draft, other).last(), Some(&"free"));
    }

    #[test]
    fn as_much_is_told_of_frames_as_was_asked_for() {
        for detail in [Detail::Names, Detail::Addresses] {
            let mut draft = Draft::new(Unit::Samples, detail);
            let stacks = [32, 33].map(|address| {
                draft.called_frame(StackId::EMPTY, &frame("read", address, &["parse"]))
            });
            assert_eq!(stacks[0] == stacks[1], detail == Detail::Names);
            let Profile {
                functions,
                modules,
                names,
                ..
            } = &draft.profile;
            let told: Vec<&Frame> = draft.profile.frames_of(stacks[1]).collect();
            let module = &modules[told[0].module.unwrap()];
            assert_eq!(&*names[module.path], "/lib/a.so");
            assert_eq!(&*names[module.build_id.unwrap()], "0a");
            let lines: Vec<_> = (told.iter())
                .map(|frame| frame.line.map(NonZeroU32::get))
                .collect();
            let system = |at: usize| {
                let function = functions[told[at].function.unwrap()];
                let file = &*names[function.file.unwrap()];
                let first_line = function.line.map(NonZeroU32::get);
                (&*names[function.system_name.unwrap()], file, first_line)
            };
            assert_eq!([told[0].is_inlined, told[1].is_inlined], [false, true]);
            assert_eq!(system(1), ("_parse", "a.c", None));
            match detail {
                Detail::Names => {
                    assert_eq!(lines, [None, Some(20)]);
                    assert_eq!((told[0].address, told[0].offset), (None, None));
                    assert!(told[0].function.is_none());
                }
                Detail::Addresses => {
                    assert_eq!(lines, [Some(10), Some(20)]);
                    assert_eq!((told[0].address, told[0].offset), (Some(33), Some(1)));
                    assert_eq!(system(0), ("_read", "a.c", Some(9)));
                    assert_eq!(told[1].address, Some(33));
                    assert_eq!(told[1].offset, None);
                }
            }
        }
    }

    #[test]
    fn threads_of_one_name_have_it_once() {
        let mut draft = Draft::new(Unit::Samples, Detail::Names);
        let mut raw = [0; COMM_LENGTH];
        raw[..2].copy_from_slice(b"ab");
        let name = draft.comm(&raw);
        assert_eq!(&*draft.profile.names[name], "ab");
        assert_eq!(draft.comm(&raw), name);
        raw[2] = b'c';
        assert_ne!(draft.comm(&raw), name);
    }

    #[test]
    fn a_marker_is_no_code() {
        let mut draft = Draft::new(Unit::Samples, Detail::Addresses);
        let marker = draft.marker("[cut]");
        assert_eq!(draft.profile.frames[marker].kind, FrameKind::Marker);
        assert_eq!(draft.marker("[cut]"), marker);
    }
}
