use bpf::types::WalkEnd;
use plain::Plain;
use profile::Unit;

use super::*;
use crate::assemble::draft::Draft;
use waits::Objects;

use crate::record::stacks::Captured;
use crate::record::{Detail, RuntimeNames, Wakers};

/// Process that does not exist, so neither its memory nor its files can be read.
const NOBODY: Process = Process {
    pid: u32::MAX,
    instance: 1,
};
/// Name of every frame of [`NOBODY`].
const UNKNOWN: &str = "[unknown]";

fn stores(per_process: bool) -> Stores {
    Stores {
        stacks: Stacks::new(),
        wakers: Wakers::new(per_process, true),
        objects: Objects::new(false),
        names: RuntimeNames::default(),
    }
}

fn inbox() -> Inbox<'static> {
    Inbox {
        stores: stores(false),
        ended: Vec::new(),
        unwinder: None,
    }
}

/// Returns the data of an object that reported nothing.
pub(crate) fn collected() -> Collected {
    Collected {
        sums: Sums::new(true, true),
        parts: Vec::new(),
        open: Vec::new(),
        stores: stores(true),
        thread_names: ThreadNames::default(),
        ended: Vec::new(),
        accounts: Vec::new(),
        drains: 0,
        lost: Losses::default(),
        notes: Vec::new(),
        left_out: LeftOut::default(),
        timeline: None,
        start_ns: None,
    }
}

fn bytes<T: Plain>(value: &T) -> &[u8] {
    // SAFETY: the value consists of integers without padding.
    unsafe { plain::as_bytes(value) }
}

/// Returns the message for a stack of [`NOBODY`] whose unwind reached the root.
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

/// Returns the names of a user stack's frames, leaf first.
fn names(inbox: &mut Inbox<'_>, id: u64) -> Vec<String> {
    let captured = inbox.stores.stacks.captured(id).unwrap();
    inbox.stores.stacks.resolve([captured].into_iter());
    let mut draft = Draft::new(Unit::Nanoseconds, Detail::Names);
    let named = inbox
        .stores
        .stacks
        .named(captured, Captured::Nothing, &mut draft);
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
