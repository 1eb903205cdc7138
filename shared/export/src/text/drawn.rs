//! Stacks as they are drawn: all that is on top of each other in a flame graph.

use profile::folded::WAKER_DELIMITER;
use profile::{Frame, Id, Profile, Sample};

use super::frames::{thread_field, wakers};
use super::options::Ids;

/// One of the boxes on top of each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Drawn {
    /// A frame.
    Frame(Id<Frame>),
    /// What is no frame: between a sleeper and its waker, and the waker's name.
    Text(Box<str>),
}

/// A sample's stack, root first: user frames, kernel frames; of each waker then what
/// tells it apart, its frames from the leaf on, and its name.
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
