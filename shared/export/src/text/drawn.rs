//! Stacks as flame graphs draw them: one box per frame, delimiter or waker.

use profile::folded::WAKER_DELIMITER;
use profile::{Frame, Id, Profile, Sample};

use super::frames::{thread_field, wakers};
use super::options::Ids;

/// One box of a stack in a flame graph.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Drawn {
    /// A frame.
    Frame(Id<Frame>),
    /// A text: the delimiter before a waker, or the waker's name.
    Text(Box<str>),
}

/// Returns the boxes of a sample's stack, root first: user frames, then kernel frames. For each
/// waker a delimiter, its frames from leaf to root, and its name follow.
pub(crate) fn drawn(profile: &Profile, sample: &Sample) -> Vec<Drawn> {
    let frames = |stack| {
        let frames = profile.stacks.root_first(stack).into_iter();
        frames.map(Drawn::Frame)
    };
    let mut boxes: Vec<Drawn> = frames(sample.stack.user).collect();
    boxes.extend(frames(sample.stack.kernel));
    for waker in wakers(profile, sample) {
        boxes.push(Drawn::Text(WAKER_DELIMITER.into()));
        boxes.extend(frames(waker.stack.kernel).rev());
        boxes.extend(frames(waker.stack.user).rev());
        let name = thread_field(profile, waker.comm, waker.thread, Ids::Thread);
        boxes.push(Drawn::Text(name.into()));
    }
    boxes
}
