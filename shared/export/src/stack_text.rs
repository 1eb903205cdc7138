//! How a stack's parts read, whatever the format they are put in.

use profile::folded::{DELIMITER, KERNEL_SUFFIX, state_suffix};
use profile::{
    Frame, FrameKind, Name, Profile, Sample, Stack, StackId, State, ThreadId, Waker, marker, text,
};

/// The thread's name, with its IDs where they are wanted and known.
pub(crate) fn thread_field(
    profile: &Profile,
    comm: Name,
    thread: Option<ThreadId>,
    per_thread: bool,
) -> String {
    let comm = thread_name(profile, comm);
    match thread {
        Some(id) if per_thread => format!("{comm}-{}/{}", id.pid, id.tid),
        _ => comm,
    }
}

/// The thread's name.
pub(crate) fn thread_name(profile: &Profile, comm: Name) -> String {
    text::comm(profile.names[comm].as_bytes())
}

/// The wakers of a sample, the one who ended the wait first.
pub(crate) fn wakers<'a>(profile: &'a Profile, sample: &Sample) -> &'a [Waker] {
    sample.wakers.map_or(&[], |wakers| &profile.wakers[wakers])
}

/// A frame's name, with the annotation if that is asked for.
fn frame_name(profile: &Profile, frame: &Frame, annotate_kernel: bool) -> String {
    let mut name = text::frame(profile.name(frame)).into_owned();
    if annotate_kernel && frame.kind == FrameKind::Kernel {
        name.push_str(KERNEL_SUFFIX);
    }
    name
}

/// The names of user frames or of kernel frames from root to leaf.
pub(crate) fn part_names(profile: &Profile, part: StackId, annotate_kernel: bool) -> Vec<String> {
    let frames = profile.frames_of(part);
    frames
        .map(|frame| frame_name(profile, frame, annotate_kernel))
        .collect()
}

/// The frames' names from root to leaf, with the annotations asked for. A stack
/// with a state but no frame gets one to carry the state.
pub(crate) fn frame_names(
    profile: &Profile,
    stack: Stack,
    state: Option<State>,
    delimited: bool,
    annotate_kernel: bool,
) -> Vec<String> {
    let mut names = part_names(profile, stack.user, annotate_kernel);
    if delimited && !stack.user.is_empty() && !stack.kernel.is_empty() {
        names.push(DELIMITER.to_owned());
    }
    names.extend(part_names(profile, stack.kernel, annotate_kernel));
    if let Some(state) = state {
        if names.is_empty() {
            names.push(marker::NO_STACK.to_owned());
        }
        if let Some(leaf) = names.last_mut() {
            leaf.push_str(state_suffix(state));
        }
    }
    names
}
