//! Rows that packets refer to by number: names, values, stacks. A row is written with the first
//! packet that refers to it.

use std::collections::HashMap;

use profile::{FrameKind, Id, Module, ModuleKind, Name, Profile, Stack, ThreadId};

use super::messages::{
    self, Callstack, CounterDescriptor, ExecutionContext, InternedBytes, InternedData,
    InternedName, Mapping, TaskContext,
};

/// Numbers of the interned rows.
pub(super) struct Interner<'a> {
    profile: &'a Profile,
    /// Rows that no packet has yet.
    new: InternedData,
    has_new: bool,
    categories: Texts,
    events: Texts,
    keys: Texts,
    values: Texts,
    stacks: HashMap<Stack, u64>,
    /// Rows by the profile's numbers, true if they are written. A row's number is its place and 1.
    functions: Vec<bool>,
    sources: Vec<bool>,
    frames: Vec<bool>,
    modules: Vec<bool>,
    threads: HashMap<ThreadId, u64>,
    cpus: HashMap<u32, u64>,
    counters: Texts,
}

/// Numbers of texts, from 1.
#[derive(Default)]
struct Texts(HashMap<Box<str>, u64>);

impl Texts {
    /// Returns the number of a text, and whether it is new.
    fn number(&mut self, text: &str) -> (u64, bool) {
        if let Some(&known) = self.0.get(text) {
            return (known, false);
        }
        let new = self.0.len() as u64 + 1;
        self.0.insert(text.into(), new);
        (new, true)
    }

    /// Returns the number of a text, which joins `rows` and sets `has_new` if it is new.
    fn intern(&mut self, text: &str, rows: &mut Vec<InternedName>, has_new: &mut bool) -> u64 {
        let (iid, is_new) = self.number(text);
        if is_new {
            let name = text.to_owned();
            rows.push(InternedName { iid, name });
            *has_new = true;
        }
        iid
    }
}

/// Returns the number of a row by its place, and whether it was not written.
fn number(written: &mut [bool], place: usize) -> (u64, bool) {
    let is_new = written
        .get_mut(place)
        .is_some_and(|written| !std::mem::replace(written, true));
    (place as u64 + 1, is_new)
}

impl<'a> Interner<'a> {
    pub(super) fn new(profile: &'a Profile) -> Interner<'a> {
        Interner {
            profile,
            new: InternedData::default(),
            has_new: false,
            categories: Texts::default(),
            events: Texts::default(),
            keys: Texts::default(),
            values: Texts::default(),
            stacks: HashMap::new(),
            functions: vec![false; profile.names.len()],
            sources: vec![false; profile.names.len()],
            frames: vec![false; profile.frames.len()],
            modules: vec![false; profile.modules.len()],
            threads: HashMap::new(),
            cpus: HashMap::new(),
            counters: Texts::default(),
        }
    }

    /// Returns the rows that no packet has yet, for the next packet.
    pub(super) fn take(&mut self) -> Option<InternedData> {
        std::mem::take(&mut self.has_new).then(|| std::mem::take(&mut self.new))
    }

    /// Returns the number of an event's category.
    pub(super) fn category(&mut self, text: &str) -> u64 {
        let rows = &mut self.new.event_categories;
        self.categories.intern(text, rows, &mut self.has_new)
    }

    /// Returns the number of an event's name.
    pub(super) fn event(&mut self, text: &str) -> u64 {
        let rows = &mut self.new.event_names;
        self.events.intern(text, rows, &mut self.has_new)
    }

    /// Returns an annotation with a text.
    pub(super) fn annotation(&mut self, key: &str, value: &str) -> messages::DebugAnnotation {
        let rows = &mut self.new.debug_annotation_string_values;
        let value = self.values.intern(value, rows, &mut self.has_new);
        messages::DebugAnnotation {
            name_iid: self.key(key),
            string_value_iid: Some(value),
            ..messages::DebugAnnotation::default()
        }
    }

    /// Returns an annotation with a number.
    pub(super) fn count(&mut self, key: &str, value: u64) -> messages::DebugAnnotation {
        messages::DebugAnnotation {
            name_iid: self.key(key),
            uint_value: Some(value),
            ..messages::DebugAnnotation::default()
        }
    }

    fn key(&mut self, key: &str) -> u64 {
        let rows = &mut self.new.debug_annotation_names;
        self.keys.intern(key, rows, &mut self.has_new)
    }

    /// Returns the number of a stack; `None` for an empty one.
    pub(super) fn stack(&mut self, stack: Stack) -> Option<u64> {
        if stack.user.is_empty() && stack.kernel.is_empty() {
            return None;
        }
        if let Some(&known) = self.stacks.get(&stack) {
            return Some(known);
        }
        let profile = self.profile;
        let parts = [stack.user, stack.kernel].into_iter();
        let frames = parts.flat_map(|part| profile.stacks.root_first(part));
        let frame_ids = frames.map(|frame| self.frame(frame)).collect();
        let iid = self.stacks.len() as u64 + 1;
        self.stacks.insert(stack, iid);
        self.new.callstacks.push(Callstack { iid, frame_ids });
        self.has_new = true;
        Some(iid)
    }

    fn frame(&mut self, id: Id<profile::Frame>) -> u64 {
        let (iid, is_new) = number(&mut self.frames, id.index());
        if !is_new {
            return iid;
        }
        let profile = self.profile;
        let frame = &profile.frames[id];
        let function = frame.function.map(|function| &profile.functions[function]);
        let file = function.and_then(|function| function.file);
        // A mapping without an address would name a place that is not known.
        let module = frame.module.filter(|_| frame.address.is_some());
        let row = messages::Frame {
            iid,
            function_name_id: self.function(frame.name),
            mapping_id: module.map_or(0, |module| self.module(module)),
            rel_pc: module.and(frame.address),
            source_path_iid: file.map(|file| self.source(file)),
            line_number: frame.line.map(u32::from),
            kind: kind(profile, frame),
        };
        self.new.frames.push(row);
        iid
    }

    fn function(&mut self, name: Name) -> u64 {
        let (iid, is_new) = number(&mut self.functions, name.index());
        if is_new {
            let name = self.profile.names[name].to_string();
            self.new.function_names.push(InternedName { iid, name });
        }
        iid
    }

    fn source(&mut self, file: Name) -> u64 {
        let (iid, is_new) = number(&mut self.sources, file.index());
        if is_new {
            let name = self.profile.names[file].to_string();
            self.new.source_paths.push(InternedName { iid, name });
        }
        iid
    }

    /// Returns the number of a module. Its path and its build ID have the same number.
    fn module(&mut self, id: Id<Module>) -> u64 {
        let (iid, is_new) = number(&mut self.modules, id.index());
        if is_new {
            let profile = self.profile;
            let module = &profile.modules[id];
            let name = profile.names[module.path].to_string();
            self.new.mapping_paths.push(InternedName { iid, name });
            let build_id = module.build_id.map(|digits| bytes(&profile.names[digits]));
            let build_id = build_id.filter(|bytes| !bytes.is_empty());
            self.new.mappings.push(Mapping {
                iid,
                build_id: build_id.as_ref().map_or(0, |_| iid),
                path_string_ids: vec![iid],
            });
            let build_id = build_id.map(|bytes| InternedBytes { iid, bytes });
            self.new.build_ids.extend(build_id);
        }
        iid
    }

    /// Returns the number of a sample's thread.
    pub(super) fn thread(&mut self, thread: ThreadId) -> u64 {
        let next = self.threads.len() as u64 + 1;
        *self.threads.entry(thread).or_insert_with(|| {
            let known = |id| (id != 0).then_some(id);
            self.new.stack_sample_task_contexts.push(TaskContext {
                iid: next,
                pid: known(thread.pid),
                tid: known(thread.tid),
            });
            self.has_new = true;
            next
        })
    }

    /// Returns the number of a sample's CPU.
    pub(super) fn cpu(&mut self, cpu: u32) -> u64 {
        let next = self.cpus.len() as u64 + 1;
        *self.cpus.entry(cpu).or_insert_with(|| {
            let new = &mut self.new.stack_sample_execution_contexts;
            new.push(ExecutionContext {
                iid: next,
                cpu: Some(cpu),
            });
            self.has_new = true;
            next
        })
    }

    /// Returns the number of a counter. The unit is nanoseconds if it has no name.
    pub(super) fn counter(&mut self, name: &str, unit: Option<&str>) -> u64 {
        let (iid, is_new) = self.counters.number(name);
        if is_new {
            let new = &mut self.new.stack_sample_counter_descriptors;
            new.push(CounterDescriptor {
                iid,
                name: name.to_owned(),
                unit: unit.is_none().then_some(messages::NANOSECONDS),
                unit_str: unit.map(str::to_owned),
            });
            self.has_new = true;
        }
        iid
    }
}

/// Returns the kind of a frame's code, if it is code.
fn kind(profile: &Profile, frame: &profile::Frame) -> Option<u32> {
    let module = frame.module.map(|module| profile.modules[module].kind);
    match (frame.kind, module) {
        (FrameKind::User, Some(ModuleKind::Jit)) => Some(messages::JIT),
        (FrameKind::User, _) => Some(messages::NATIVE),
        (FrameKind::Kernel, _) => Some(messages::KERNEL),
        (FrameKind::Interpreted(_), _) => Some(messages::INTERPRETED),
        (FrameKind::Marker, _) => None,
    }
}

/// Returns the bytes of hexadecimal digits, as far as there are any.
fn bytes(digits: &str) -> Vec<u8> {
    let digits = digits.chars().map_while(|digit| digit.to_digit(16));
    let digits: Vec<u32> = digits.collect();
    let pairs = digits.chunks_exact(2);
    pairs.map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}
