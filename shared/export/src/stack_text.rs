//! How a stack's parts read, whatever the format they are put in.

use profile::folded::{DELIMITER, KERNEL_SUFFIX, state_suffix};
use profile::{Frame, FrameKind, State, ThreadId, marker, text};

/// The thread's name, with its IDs where they are wanted and known.
pub(crate) fn thread_field(comm: &str, thread: Option<ThreadId>, per_thread: bool) -> String {
    let comm = text::comm(comm.as_bytes());
    match thread {
        Some(id) if per_thread => format!("{comm}-{}/{}", id.pid, id.tid),
        _ => comm,
    }
}

/// The user frames and the kernel frames below them, each root to leaf.
pub(crate) fn split_kernel(frames: &[Frame]) -> (&[Frame], &[Frame]) {
    let first = frames
        .iter()
        .position(|frame| frame.kind == FrameKind::Kernel || &*frame.name == marker::MISSED_KERNEL);
    frames.split_at(first.unwrap_or(frames.len()))
}

/// A frame's name, with the annotation if that is asked for.
pub(crate) fn frame_name(frame: &Frame, annotate_kernel: bool) -> String {
    let mut name = text::frame(&frame.name).into_owned();
    if annotate_kernel && frame.kind == FrameKind::Kernel {
        name.push_str(KERNEL_SUFFIX);
    }
    name
}

/// The frames' names from root to leaf, with the annotations asked for. A stack
/// with a state but no frame gets one to carry the state.
pub(crate) fn frame_names(
    frames: &[Frame],
    state: Option<State>,
    delimited: bool,
    annotate_kernel: bool,
) -> Vec<String> {
    let (user, kernel) = split_kernel(frames);
    let name = |frame| frame_name(frame, annotate_kernel);
    let mut names: Vec<String> = user.iter().map(name).collect();
    if delimited && !user.is_empty() && !kernel.is_empty() {
        names.push(DELIMITER.to_owned());
    }
    names.extend(kernel.iter().map(name));
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
