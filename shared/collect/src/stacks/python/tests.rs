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
