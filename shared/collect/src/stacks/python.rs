//! Python functions: read from the interpreter while they are there, and put between the
//! native frames.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use bpf::types::PythonFunction;
use languages::interleave::{Mixed, interleave, interleave_each};
use languages::python::{self, Anchoring, CodeObject, End, Frame, Pieces, Version};
use process::Process;
use process::ProcessMemory;
use profile::FrameKind;
use symbolize::{CodeSource, Interpreted, Location, Symbolizer};

use crate::unwinding::{Python, PythonFrames, layout_of};

/// Bytes of functions that are remembered: a target can make any number.
const MOST_BYTES: usize = 128 << 20;

/// Where the native frames are on the stack.
pub(crate) struct Extent<'a> {
    /// The stack pointer at the leaf.
    pub(crate) stack_pointer: u64,
    /// The canonical frame addresses, of the last frame or not.
    pub(crate) cfas: &'a [u64],
    /// Whether the walk came to the thread's first function.
    pub(crate) reached_root: bool,
}

/// What is known of the functions that Python programs run.
#[derive(Default)]
pub(crate) struct Functions {
    known: HashMap<(Process, u64, u32), Arc<CodeObject>>,
    /// Bytes that these take.
    bytes: usize,
    /// The code that runs functions one by one, offsets by file.
    evaluators: HashMap<u32, Vec<(u64, u64)>>,
    /// Whether the native frame that runs Python frames is shown with them.
    pub(crate) shows_native: bool,
    /// Whether it is to be said if there is no interpreter.
    pub(crate) is_expected: bool,
    is_there: bool,
    /// Versions whose frames nobody knows how to read.
    unknown: BTreeSet<Version>,
    counts: Counts,
}

/// Stacks with Python frames, by how these ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    whole: u64,
    read_failed: u64,
    too_deep: u64,
    broken: u64,
    unanchored: u64,
    /// Frames of functions that were gone before they could be named.
    gone: u64,
    /// Stacks of interpreters that were found too late.
    not_read: u64,
}

/// What a program sent of a function.
struct Sent<'a> {
    event: &'a PythonFunction,
    lines: &'a [u8],
}

impl Pieces for Sent<'_> {
    fn bytes(&self, start: u64, most: usize) -> Vec<u8> {
        let PythonFunction {
            code,
            name,
            file,
            lines,
            code_object,
            name_object,
            file_object,
            ..
        } = self.event;
        let pieces = [
            (*code, &code_object[..], code_object.len() as u64),
            (name.address, &name_object[..], name.bytes),
            (file.address, &file_object[..], file.bytes),
            (lines.address, self.lines, lines.bytes),
        ];
        let read = pieces.into_iter().find_map(|(address, bytes, length)| {
            let bytes = &bytes[..bytes.len().min(length as usize)];
            let offset = usize::try_from(start.checked_sub(address)?).ok()?;
            let rest = bytes.get(offset..)?;
            (!rest.is_empty()).then(|| &rest[..rest.len().min(most)])
        });
        read.unwrap_or_default().to_vec()
    }
}

impl Functions {
    /// Keeps a function as a program sent it, if all of it came; else it is to be read.
    pub(crate) fn add(&mut self, event: &PythonFunction, lines: &[u8]) {
        let sent = Sent { event, lines };
        let read = layout_of(event.layout)
            .and_then(|layout| python::read_stopped(&sent, layout, event.code, event.checksum));
        let process = Process {
            pid: event.pid,
            instance: event.instance,
        };
        if let Some(read) = read {
            self.keep((process, event.code, event.checksum), &Arc::new(read));
        }
    }

    fn keep(&mut self, key: (Process, u64, u32), function: &Arc<CodeObject>) {
        if self.bytes + function.size() <= MOST_BYTES {
            self.bytes += function.size();
            let before = self.known.insert(key, Arc::clone(function));
            self.bytes -= before.map_or(0, |before| before.size());
        }
    }

    /// Puts Python frames between native ones, leaf first.
    pub(crate) fn mix(
        &mut self,
        native: &[Location],
        extent: &Extent<'_>,
        python: &PythonFrames,
        symbolizer: &mut Symbolizer,
    ) -> Vec<Location> {
        let chain = &python.chain;
        let (links, shows_native) = (&chain.links, self.shows_native);
        let has_no_anchors = python.layout.anchoring == Anchoring::Nothing;
        let are_whole = extent.reached_root && chain.end == End::Whole;
        let one_by_one = has_no_anchors.then(|| {
            let runs_one = |index: usize| native.get(index).is_some_and(|at| self.runs_one(*at));
            interleave_each(native.len(), runs_one, are_whole, links, shows_native)
        });
        let mixed = one_by_one.flatten().unwrap_or_else(|| {
            let (stack_pointer, cfas) = (extent.stack_pointer, extent.cfas);
            let natives = native.len();
            let to_root = extent.reached_root;
            interleave(stack_pointer, cfas, natives, to_root, links, shows_native)
        });
        let memory = ProcessMemory::new(python.process.pid);
        let mut locations = Vec::with_capacity(mixed.len() + 1);
        let mut mark_at = None;
        let mut is_unanchored = false;
        let mut ran_python = false;
        for frame in mixed {
            let is_caller = std::mem::replace(&mut ran_python, matches!(frame, Mixed::Frame(_)));
            match frame {
                // With -X perf the interpreter calls itself through a stub for each function,
                // which a perf map calls as the function that is there already.
                Mixed::Native(index)
                    if is_caller && matches!(native.get(index), Some(Location::Jit { .. })) => {}
                Mixed::Native(index) => locations.extend(native.get(index)),
                Mixed::Unanchored => {
                    is_unanchored = true;
                    locations.push(marker("[python: not placed]", symbolizer));
                }
                Mixed::Frame(frame) => {
                    let known = self.function(python, &memory, frame);
                    locations.extend(self.locate(known, frame, symbolizer));
                    mark_at = Some(locations.len());
                }
            }
        }
        let mark = match chain.end {
            End::Whole | End::NoThread => None,
            End::ReadFailed => Some("[python: read failed]"),
            End::TooDeep => Some("[python: too deep]"),
            End::Broken => Some("[python: not understood]"),
            End::NotRead => Some("[python: not read]"),
        };
        if let Some(mark) = mark {
            // Callers are missing from there on.
            let at = mark_at.unwrap_or(locations.len());
            locations.insert(at, marker(mark, symbolizer));
        }
        self.counts.add(chain.end, is_unanchored);
        locations
    }

    /// Takes in an interpreter that was found in a process.
    pub(crate) fn see(&mut self, interpreter: Python) {
        self.is_there = true;
        if interpreter.layout.is_none() {
            self.unknown.insert(interpreter.version);
        }
        if let CodeSource::File(file) = interpreter.source {
            self.evaluators.insert(file, interpreter.evaluation);
        }
    }

    fn runs_one(&self, location: Location) -> bool {
        let Location::File { file, offset } = location else {
            return false;
        };
        let code = self.evaluators.get(&file).into_iter().flatten();
        code.into_iter()
            .any(|(start, end)| (*start..*end).contains(&offset))
    }

    /// The function that a frame runs, if it can still be read or has been.
    fn function(
        &mut self,
        python: &PythonFrames,
        memory: &ProcessMemory,
        frame: Frame,
    ) -> Option<Arc<CodeObject>> {
        let key = (python.process, frame.code, frame.checksum);
        let known = self.known.get(&key).map(Arc::clone);
        if let Some(known) = &known
            && known.has_lines()
        {
            return Some(Arc::clone(known));
        }
        // What a program sends is bounded.
        let Some(read) = python::read(memory, python.layout, frame.code, frame.checksum) else {
            return known;
        };
        let read = Arc::new(read);
        self.keep(key, &read);
        Some(read)
    }

    /// Where a frame is; `None` of one that Python itself does not show.
    fn locate(
        &mut self,
        function: Option<Arc<CodeObject>>,
        frame: Frame,
        symbolizer: &mut Symbolizer,
    ) -> Option<Location> {
        let Some(function) = function else {
            self.counts.gone += 1;
            return Some(marker("[python: function is gone]", symbolizer));
        };
        if !function.is_begun(frame.instruction) {
            return None;
        }
        let interpreted = Interpreted {
            kind: FrameKind::Python,
            name: function.name.as_str().into(),
            file: Some(function.file.as_str().into()),
            first_line: function.first_line,
        };
        Some(symbolizer.locate_interpreted(interpreted, function.line(frame.instruction)))
    }

    /// Forgets the functions of programs that have ended.
    pub(crate) fn forget(&mut self, has_ended: impl Fn(Process) -> bool) {
        self.known.retain(|(process, ..), _| !has_ended(*process));
        self.bytes = self.known.values().map(|function| function.size()).sum();
    }

    /// What is to be said of Python's frames, if there were any, in lines.
    pub(crate) fn notes(&self) -> Vec<String> {
        let Counts {
            whole,
            read_failed,
            too_deep,
            broken,
            unanchored,
            gone,
            not_read,
        } = self.counts;
        let all = whole + read_failed + too_deep + broken + not_read;
        let unknown = self.unknown.iter().map(|version| {
            format!(
                "Python {version}: only the interpreter's own functions are shown; \
                 those of 3.8 to 3.14 with a global lock can be read"
            )
        });
        let counted = (all > 0).then(|| {
            format!(
                "stacks with Python functions: {whole} of {all} whole; \
                 cut short: {read_failed} read failed, {too_deep} too deep, \
                 {broken} not understood, {not_read} not read; {unanchored} not placed; \
                 {gone} functions were gone before they could be named"
            )
        });
        let is_missed = self.is_expected && !self.is_there;
        let missed = is_missed.then(|| {
            "--language python: no process that was measured has a Python interpreter; \
             its stacks are native"
                .to_owned()
        });
        unknown.chain(counted).chain(missed).collect()
    }
}

impl Counts {
    fn add(&mut self, end: End, is_unanchored: bool) {
        match end {
            End::Whole => self.whole += 1,
            End::ReadFailed => self.read_failed += 1,
            End::TooDeep => self.too_deep += 1,
            End::Broken => self.broken += 1,
            End::NotRead => self.not_read += 1,
            End::NoThread => {}
        }
        self.unanchored += u64::from(is_unanchored);
    }
}

fn marker(text: &str, symbolizer: &mut Symbolizer) -> Location {
    let marker = Interpreted {
        kind: FrameKind::Marker,
        name: text.into(),
        file: None,
        first_line: 0,
    };
    symbolizer.locate_interpreted(marker, None)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
