//! Python functions: read from the interpreter while they are there, and put between the
//! native frames.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use bpf::types::PythonFunction;
use languages::interleave::{Mixed, interleave, interleave_each};
use languages::python::{self, Anchoring, CodeObject, End, Frame, Pieces, Version};
use profile::FrameKind;
use symbolize::{CodeSource, Interpreted, Location, Process, Symbolizer};
use unwind::ProcessMemory;

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
        for frame in mixed {
            match frame {
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
mod tests {
    use bpf::types::{MixedStack, PYTHON_ANCHOR, PythonEnd, PythonLink, PythonPiece};
    use languages::interleave::Link;
    use languages::python::{Chain, Layout, checksum};

    use super::*;
    use crate::living::Living;
    use crate::stacks::{Captured, Outcome, Stacks, UserStack, WalkEnd};

    const MINOR: u32 = 11;
    /// Of a process that is not there: nothing can be read of it.
    const NOBODY: u32 = 10_000_000;
    /// Where it had its function, and what belongs to that.
    const CODE: u64 = 0x1000;
    const NAME: u64 = 0x2000;
    const FILE: u64 = 0x3000;
    const LINES: u64 = 0x4000;
    const FIRST_LINE: u32 = 7;

    fn function_at(instruction: i32) -> Frame {
        Frame {
            code: CODE,
            instruction,
            checksum: checksum(FILE, NAME, FIRST_LINE),
        }
    }

    /// A string as the interpreter has it, and its length.
    fn text<const N: usize>(text: &str, layout: &Layout) -> ([u8; N], u64) {
        let mut object = [0; N];
        object[16..24].copy_from_slice(&(text.len() as u64).to_le_bytes());
        // A byte for each character, right behind, and ASCII.
        object[32] = 1 << 2 | 1 << 5 | 1 << 6;
        let start = usize::from(layout.ascii_data);
        object[start..start + text.len()].copy_from_slice(text.as_bytes());
        (object, (start + text.len()) as u64)
    }

    /// What a program sends of the function `f` in `a.py`, with an empty table of lines.
    fn sent(pid: u32) -> (PythonFunction, [u8; 32]) {
        let layout = layout_of(MINOR).unwrap();
        let ((name_object, name), (file_object, file)) = (text("f", layout), text("a.py", layout));
        let mut event = PythonFunction {
            pid,
            instance: 1,
            code: CODE,
            checksum: checksum(FILE, NAME, FIRST_LINE),
            layout: MINOR,
            name: piece(NAME, name),
            file: piece(FILE, file),
            lines: piece(LINES, 32),
            name_object,
            file_object,
            ..PythonFunction::default()
        };
        for (offset, address) in [
            (layout.code_qualname, NAME),
            (layout.code_filename, FILE),
            (layout.code_line_table, LINES),
        ] {
            event.code_object[usize::from(offset)..][..8].copy_from_slice(&address.to_le_bytes());
        }
        let first_line = &mut event.code_object[usize::from(layout.code_first_line)..][..4];
        first_line.copy_from_slice(&FIRST_LINE.to_le_bytes());
        (event, [0; 32])
    }

    fn piece(address: u64, bytes: u64) -> PythonPiece {
        PythonPiece { address, bytes }
    }

    /// The stack of one native frame, whose walk ended so, and the same with the function.
    fn mixed(end: WalkEnd) -> (Stacks, MixedStack, [PythonLink; 2]) {
        let mut stacks = Stacks::new();
        let outcome = Outcome {
            end,
            by_frame_pointer: false,
        };
        stacks.keep(10, vec![Location::Vdso { offset: 8 }], Some(outcome), None);
        let (event, lines) = sent(NOBODY);
        stacks.add_function(&event, &lines);
        let mixed = MixedStack {
            hash: 11,
            native: 10,
            instance: 1,
            pid: NOBODY,
            end: PythonEnd::PYTHON_WHOLE.0,
            stack_pointer: 0x100,
            layout: MINOR,
            ..MixedStack::default()
        };
        let function = PythonLink {
            code: CODE,
            instruction: 0,
            checksum: event.checksum,
        };
        let anchor = PythonLink {
            code: 0x200,
            instruction: PYTHON_ANCHOR,
            checksum: 0,
        };
        (stacks, mixed, [function, anchor])
    }

    /// The names of a stack's frames, leaf first.
    fn names(stacks: &Stacks, id: u64) -> Vec<Arc<str>> {
        let Some(Captured::Stack(walked)) = stacks.captured(id) else {
            return Vec::new();
        };
        let leaves = stacks.tree.leaf_first(walked.stack);
        let locations = leaves.map(|leaf| stacks.locations[leaf]);
        let frames = locations.map(|location| stacks.symbolizer.frame(location));
        frames.map(|frame| frame.name).collect()
    }

    #[test]
    fn the_last_frame_of_a_whole_walk_has_all_that_is_above() {
        let (mut stacks, event, links) = mixed(WalkEnd::Root);
        stacks.add_mixed(&event, &links, &[]);
        assert_eq!(names(&stacks, 11), ["a.py:f".into()]);
        let (mut stacks, event, links) = mixed(WalkEnd::NoRule);
        stacks.add_mixed(&event, &links, &[]);
        let expected = ["[vdso]", "[python: not placed]", "a.py:f"];
        assert_eq!(names(&stacks, 11), expected.map(Arc::from));
    }

    #[test]
    fn the_same_holds_for_what_was_walked_from_outside() {
        for (end, count) in [(WalkEnd::Root, 1), (WalkEnd::NoRule, 3)] {
            let (mut stacks, event, links) = mixed(end);
            let python = PythonFrames::from_event(&event, &links).unwrap();
            let outcome = Outcome {
                end,
                by_frame_pointer: false,
            };
            let user = UserStack {
                frames: &[8],
                is_exact: true,
                outcome: Some(outcome),
                stack_pointer: event.stack_pointer,
                cfas: &[],
                python: Some(&python),
            };
            stacks.add_user(12, python.process, user);
            let names = names(&stacks, 12);
            assert_eq!(names.len(), count, "{names:?}");
        }
    }

    #[test]
    fn frames_without_anchors_are_one_by_one_unless_all_are_there_and_not_as_many() {
        const FILE: u32 = 3;
        let native = [5, 7].map(|offset| Location::File { file: FILE, offset });
        let mut functions = Functions::default();
        functions.evaluators.insert(FILE, vec![(0, 10)]);
        for (reached_root, end, is_whole) in [
            (true, End::Whole, true),
            (true, End::TooDeep, false),
            (false, End::Whole, false),
        ] {
            let frames = PythonFrames {
                process: Process {
                    pid: NOBODY,
                    instance: 1,
                },
                layout: layout_of(9).unwrap(),
                chain: Chain {
                    links: vec![Link::Frame(function_at(0))],
                    end,
                },
            };
            let extent = Extent {
                stack_pointer: 0,
                cfas: &[],
                reached_root,
            };
            let mixed = functions.mix(&native, &extent, &frames, &mut Symbolizer::new());
            assert_eq!(mixed.contains(&native[0]), is_whole, "{mixed:?}");
        }
    }

    #[test]
    fn frames_of_a_dump_wait_for_its_walk() {
        let (mut stacks, event, links) = mixed(WalkEnd::Root);
        let of_dump = MixedStack {
            native: 11,
            ..event
        };
        stacks.add_mixed(&of_dump, &links, &[]);
        assert_eq!(stacks.captured(11), None);
        assert_eq!(stacks.take_python_of_dump(11).unwrap().chain.links.len(), 2);
        assert!(stacks.take_python_of_dump(11).is_none());
    }

    #[test]
    fn functions_go_with_their_programs() {
        let mut stacks = Stacks::new();
        let ours = std::process::id();
        let mut one = 0;
        for pid in [ours, NOBODY] {
            let (event, lines) = sent(pid);
            stacks.add_function(&event, &lines);
            one = stacks.python.bytes - one;
        }
        stacks.forget_functions(&Living::read().unwrap());
        let known = stacks.python.known.keys();
        let pids: Vec<u32> = known.map(|(process, ..)| process.pid).collect();
        assert_eq!((pids, stacks.python.bytes), (vec![ours], one));
    }

    #[test]
    fn functions_are_kept_while_there_is_room() {
        let (event, lines) = sent(NOBODY);
        let functions = |bytes, times| {
            let mut functions = Functions {
                bytes,
                ..Functions::default()
            };
            (0..times).for_each(|_| functions.add(&event, &lines));
            functions
        };
        let size = functions(0, 1).bytes;
        // One that comes again is there once.
        assert_eq!(functions(0, 2).bytes, size);
        for (bytes, kept) in [(MOST_BYTES - size, 1), (MOST_BYTES - size + 1, 0)] {
            assert_eq!(functions(bytes, 1).known.len(), kept);
        }
    }

    #[test]
    fn stacks_are_counted_by_how_their_frames_ended() {
        let mut functions = Functions::default();
        assert_eq!(functions.notes(), [""; 0]);
        let process = Process {
            pid: NOBODY,
            instance: 1,
        };
        let extent = Extent {
            stack_pointer: 0,
            cfas: &[],
            reached_root: false,
        };
        let mut symbolizer = Symbolizer::new();
        let mut mix = |end, functions_gone: i32| {
            let links = (0..functions_gone).map(|at| Link::Frame(function_at(at)));
            let frames = PythonFrames {
                process,
                layout: layout_of(MINOR).unwrap(),
                chain: Chain {
                    links: links.collect(),
                    end,
                },
            };
            functions.mix(&[Location::Unknown], &extent, &frames, &mut symbolizer);
        };
        // No anchor says where these belong.
        mix(End::Whole, 3);
        for (times, end) in [
            (2, End::ReadFailed),
            (4, End::TooDeep),
            (8, End::Broken),
            (16, End::NotRead),
            (32, End::NoThread),
        ] {
            (0..times).for_each(|_| mix(end, 0));
        }
        let expected = "stacks with Python functions: 1 of 31 whole; cut short: 2 read failed, \
             4 too deep, 8 not understood, 16 not read; 1 not placed; \
             3 functions were gone before they could be named";
        assert_eq!(functions.notes(), [expected]);
    }
}
