//! Texts of threads and frames.

use std::cell::OnceCell;
use std::fmt::Write;

use profile::folded::{DELIMITER, INLINED_SUFFIX, KERNEL_SUFFIX};
use profile::{Frame, FrameKind, Id, Name, Profile, Sample, Stack, StackId, ThreadId, Waker, text};

use super::options::{Ids, Options};
use super::waits::wait_text;

/// Returns the thread's name, followed by `ids` if they are known.
pub(crate) fn thread_field(
    profile: &Profile,
    comm: Name,
    thread: Option<ThreadId>,
    ids: Ids,
) -> String {
    let comm = thread_name(profile, comm);
    match (thread, ids) {
        (Some(id), Ids::Thread) => format!("{comm}-{}/{}", id.pid, id.tid),
        (Some(id), Ids::Process) => format!("{comm}-{}", id.pid),
        _ => comm,
    }
}

/// Returns the thread's name.
pub(crate) fn thread_name(profile: &Profile, comm: Name) -> String {
    profile.names[comm].to_string()
}

/// Returns the wakers of a sample. The first waker ended the wait.
pub fn wakers<'a>(profile: &'a Profile, sample: &Sample) -> &'a [Waker] {
    sample.wakers.map_or(&[], |wakers| &profile.wakers[wakers])
}

/// Returns the last component of a path, without brackets around it.
pub(crate) fn file_name(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    let inside = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    inside.unwrap_or(name)
}

/// Returns the source file and the line of a frame, if both are known.
pub(crate) fn source<'a>(profile: &'a Profile, frame: &Frame) -> Option<(&'a str, u32)> {
    let file = profile.functions[frame.function?].file?;
    Some((&profile.names[file], frame.line?.get()))
}

/// Returns a frame's name, followed by the details that `options` ask for.
pub fn frame_name(profile: &Profile, frame: &Frame, options: &Options) -> String {
    let mut name = profile.name(frame).to_owned();
    // Writing to a string does not fail.
    if options.symbol_offsets
        && let Some(offset) = frame.offset
    {
        let _ = write!(name, "+{offset:#x}");
    }
    if options.source_lines
        && let Some((file, line)) = source(profile, frame)
    {
        let _ = write!(name, " ({}:{line})", file_name(file));
    }
    if options.addresses
        && let (Some(module), Some(address)) = (frame.module, frame.address)
    {
        let module = file_name(&profile.names[profile.modules[module].path]);
        let _ = write!(name, " [{module}+{address:#x}]");
    }
    let mut name = text::frame(&name).into_owned();
    if options.annotate && frame.kind == FrameKind::Kernel {
        name.push_str(KERNEL_SUFFIX);
    }
    if options.annotate && frame.is_inlined {
        name.push_str(INLINED_SUFFIX);
    }
    name
}

/// Returns the frame on top of a stack that names the thread's wait. Returns `None` if `options` do
/// not ask for reasons, or if the wait is unknown.
pub(crate) fn reason_frame(
    profile: &Profile,
    sample: &Sample,
    options: &Options,
) -> Option<String> {
    let wait = options.reasons.then(|| profile.wait(sample)).flatten()?;
    Some(text::frame(&format!("[{}]", wait_text(profile, wait))).into_owned())
}

/// The names of a profile's frames, each built once.
pub(crate) struct FrameNames<'a> {
    profile: &'a Profile,
    options: &'a Options,
    /// Names by the index of the frame in the profile.
    names: Vec<OnceCell<Box<str>>>,
}

impl<'a> FrameNames<'a> {
    pub(crate) fn new(profile: &'a Profile, options: &'a Options) -> FrameNames<'a> {
        FrameNames {
            profile,
            options,
            names: vec![OnceCell::new(); profile.frames.len()],
        }
    }

    /// Returns a frame's name, with the details that the options ask for.
    pub(crate) fn name(&self, frame: Id<Frame>) -> &str {
        let known = &self.names[frame.index()];
        known.get_or_init(|| {
            frame_name(self.profile, &self.profile.frames[frame], self.options).into()
        })
    }

    /// Returns the names of user frames or of kernel frames from root to leaf.
    pub(crate) fn part(&self, part: StackId) -> impl DoubleEndedIterator<Item = &str> {
        let frames = self.profile.stacks.root_first(part).into_iter();
        frames.map(|frame| self.name(frame))
    }

    /// Returns the names of a stack's frames from root to leaf.
    pub(crate) fn stack(&self, stack: Stack) -> Vec<&str> {
        let is_delimited =
            self.options.delimited && !stack.user.is_empty() && !stack.kernel.is_empty();
        let names = self.part(stack.user);
        let names = names.chain(is_delimited.then_some(DELIMITER));
        names.chain(self.part(stack.kernel)).collect()
    }
}
