use bpf::types::{
    COMM_LENGTH, ObjectEvent, ObjectKind, PYTHON_ANCHOR, PythonEnd, PythonPiece, STACK_MISSED,
    WakerChainEvent, WakerEvent, WalkEnd,
};
use plain::Plain;
use profile::Unit;
use regex::Regex;

use super::*;
use crate::Detail;
use crate::draft::Draft;
use crate::stacks::Captured;
use crate::unwinding::layout_of;

/// A process that there is not: its memory cannot be read, nor its files.
const NOBODY: Process = Process {
    pid: u32::MAX,
    instance: 1,
};
/// What frames of it are called.
const UNKNOWN: &str = "[unknown]";

fn inbox() -> Inbox<'static> {
    Inbox {
        stacks: Stacks::new(),
        wakers: Wakers::new(false),
        objects: Objects::new(false),
        ended: Vec::new(),
        unwinder: None,
    }
}

/// What an object reported that did nothing.
pub(crate) fn collected() -> Collected {
    Collected {
        sums: Sums::new(true),
        parts: Vec::new(),
        open: Vec::new(),
        stacks: Stacks::new(),
        wakers: Wakers::new(true),
        objects: Objects::new(false),
        thread_names: ThreadNames::default(),
        ended: Vec::new(),
        accounts: Vec::new(),
        drains: 0,
        lost: Losses::default(),
        notes: Vec::new(),
    }
}

fn bytes<T: Plain>(value: &T) -> &[u8] {
    // SAFETY: integers without padding.
    unsafe { plain::as_bytes(value) }
}

/// A stack of nobody's, as it is sent; the walk came to its root.
fn stack(id: u64, depth: u32, frames: &[u64]) -> Vec<u8> {
    let event = StackEvent {
        kind: EventKind::EVENT_STACK.0,
        depth,
        hash: id,
        pid: NOBODY.pid,
        instance: NOBODY.instance,
        walk_end: WalkEnd::WALK_REACHED_ROOT.0,
        ..StackEvent::default()
    };
    let mut message = bytes(&event)[..offset_of!(StackEvent, frames)].to_vec();
    message.extend(frames.iter().flat_map(|frame| frame.to_ne_bytes()));
    message
}

fn frame(code: u64, checksum: u32) -> PythonLink {
    PythonLink {
        code,
        instruction: 0,
        checksum,
    }
}

fn anchor(address: u64) -> PythonLink {
    PythonLink {
        code: address,
        instruction: PYTHON_ANCHOR,
        checksum: 0,
    }
}

/// The stack 11 of the native frames of 10 and these of Python 3.11.
fn mixed(count: u32, links: &[PythonLink], cfas: &[u64]) -> Vec<u8> {
    let event = MixedStack {
        kind: EventKind::EVENT_MIXED_STACK.0,
        count,
        hash: 11,
        native: 10,
        pid: NOBODY.pid,
        instance: NOBODY.instance,
        end: PythonEnd::PYTHON_WHOLE.0,
        stack_pointer: 100,
        layout: 11,
        depth: cfas.len() as u32,
        ..MixedStack::default()
    };
    let mut message = bytes(&event)[..offset_of!(MixedStack, links)].to_vec();
    message.extend(links.iter().flat_map(bytes));
    message.extend(cfas.iter().flat_map(|cfa| cfa.to_ne_bytes()));
    message
}

/// The names of a user stack's frames, leaf first.
fn names(inbox: &mut Inbox<'_>, id: u64) -> Vec<String> {
    let captured = inbox.stacks.captured(id).unwrap();
    inbox.stacks.resolve([captured].into_iter());
    let mut draft = Draft::new(Unit::Nanoseconds, Detail::Names);
    let named = inbox.stacks.named(captured, Captured::Nothing, &mut draft);
    let frames = draft.profile.frames_of(named.stack.user).rev();
    frames
        .map(|frame| draft.profile.name(frame).to_owned())
        .collect()
}

#[test]
fn a_stack_has_as_many_frames_as_are_said_and_sent() {
    for (depth, frames, expected) in [(3, &[1, 2][..], 2), (1, &[1, 2], 1), (2, &[1, 2], 2)] {
        let mut inbox = inbox();
        inbox.take(&stack(10, depth, frames));
        assert_eq!(names(&mut inbox, 10), vec![UNKNOWN; expected]);
    }
}

#[test]
fn frames_of_python_are_where_their_anchor_lies() {
    const GONE: &str = "[python: function is gone]";
    let mut inbox = inbox();
    inbox.take(&stack(10, 3, &[1, 2, 3]));
    let links = [frame(0x1000, 9), anchor(350)];
    inbox.take(&mixed(2, &links, &[200, 300, 400]));
    assert_eq!(names(&mut inbox, 11), [UNKNOWN, UNKNOWN, GONE]);
    // One less is sent than is said.
    let mut inbox = self::inbox();
    inbox.take(&stack(10, 1, &[1]));
    inbox.take(&mixed(3, &links, &[]));
    assert_eq!(names(&mut inbox, 11), [GONE]);
}

/// A function of Python 3.11's as a program sends it, and the checksum of its code.
fn function(name: &str) -> (Vec<u8>, u32) {
    let layout = layout_of(11).unwrap();
    let text = |bytes: &mut [u8], text: &str| {
        bytes[16..24].copy_from_slice(&(text.len() as u64).to_ne_bytes());
        // Of one byte a character, compact, ASCII.
        bytes[32] = 1 << 2 | 1 << 5 | 1 << 6;
        let from = usize::from(layout.ascii_data);
        bytes[from..from + text.len()].copy_from_slice(text.as_bytes());
    };
    let piece = |address, bytes: usize| PythonPiece {
        address,
        bytes: bytes as u64,
    };
    let mut event = PythonFunction {
        kind: EventKind::EVENT_PYTHON_FUNCTION.0,
        pid: NOBODY.pid,
        instance: NOBODY.instance,
        code: 0x1000,
        layout: 11,
        ..PythonFunction::default()
    };
    event.name = piece(0x2000, event.name_object.len());
    event.file = piece(0x3000, event.file_object.len());
    text(&mut event.name_object, name);
    text(&mut event.file_object, "a.py");
    for (offset, address) in [
        (layout.code_qualname, event.name.address),
        (layout.code_filename, event.file.address),
    ] {
        let at = usize::from(offset);
        event.code_object[at..at + 8].copy_from_slice(&address.to_ne_bytes());
    }
    event.checksum = languages::python::checksum(event.file.address, event.name.address, 0);
    let message = &bytes(&event)[..offset_of!(PythonFunction, lines_object)];
    (message.to_vec(), event.checksum)
}

#[test]
fn a_function_that_was_sent_is_named() {
    let mut inbox = inbox();
    let (message, checksum) = function("spin");
    inbox.take(&message);
    inbox.take(&stack(10, 1, &[1]));
    inbox.take(&mixed(2, &[frame(0x1000, checksum), anchor(150)], &[200]));
    assert_eq!(names(&mut inbox, 11), ["a.py:spin"]);
}

#[test]
fn chains_and_objects_are_kept_by_their_ids() {
    let mut inbox = inbox();
    inbox.take(bytes(&WakerChainEvent {
        kind: EventKind::EVENT_WAKER_CHAIN.0,
        id: 20,
        ..WakerChainEvent::default()
    }));
    inbox.take(bytes(&ObjectEvent {
        kind: EventKind::EVENT_OBJECT.0,
        id: 21,
        object: ObjectKind::OBJECT_CHILD.0,
        ..ObjectEvent::default()
    }));
    assert_eq!(inbox.wakers.first(20), Some(20));
    assert_eq!(inbox.objects.first(21), Some(21));
}

#[test]
fn ids_of_processes_that_ended_are_forgotten() {
    let mut inbox = inbox();
    inbox.take(&stack(10, 1, &[1]));
    for (id, pid) in [(20, std::process::id()), (21, NOBODY.pid)] {
        inbox.wakers.add(WakerEvent {
            id,
            pid,
            ..WakerEvent::default()
        });
        inbox.wakers.settle(&inbox.stacks, |_, _| false);
    }
    let unused = inbox.unused(&Living::read().unwrap());
    assert_eq!(unused, HashSet::from([10, 21]));
    inbox.forget(&unused);
    assert_eq!(inbox.stacks.captured(10), None);
    assert_eq!([20, 21].map(|id| inbox.wakers.first(id)), [Some(20), None]);
}

#[test]
fn a_stack_of_a_process_that_ended_is_waited_for_no_more() {
    let mut inbox = inbox();
    let mut sums = Sums::new(false);
    for (pid, user) in [(std::process::id(), 98), (NOBODY.pid, 99)] {
        let key = StackKey {
            pid,
            user,
            ..StackKey::default()
        };
        sums.add(key, &Tally::default(), inbox.arrived());
    }
    let mut awaited = |living: Option<&Living>| {
        inbox.settle(&mut sums, living);
        [98, 99].map(|id| sums.open_ids().any(|open| open == id))
    };
    assert_eq!(awaited(None), [true, true]);
    assert_eq!(awaited(Living::read().as_ref()), [true, false]);
}

#[test]
fn what_is_found_in_no_name_is_told_and_the_rest_is_counted() {
    let mut collected = Collected {
        thread_names: ThreadNames::new(Some(Regex::new("^b").unwrap())),
        ..collected()
    };
    for (name, events, told) in [(b'a', 0, Some("^b")), (b'b', 3, None)] {
        let key = StackKey {
            user: STACK_MISSED,
            comm: [name; COMM_LENGTH],
            ..StackKey::default()
        };
        let tally = Tally {
            events: 3,
            ..Tally::default()
        };
        collected.add(key, &tally);
        assert_eq!(collected.unseen_thread_name(), told);
        assert_eq!(collected.total().events, events);
    }
}
