//! How a stack's parts read.

use std::cell::OnceCell;
use std::fmt::Write;

use profile::folded::{DELIMITER, INLINED_SUFFIX, KERNEL_SUFFIX};
use profile::{Frame, FrameKind, Id, Name, Profile, Sample, Stack, StackId, ThreadId, Waker, text};

use super::options::{Ids, Options};
use super::waits::wait_text;

/// The thread's name, with its IDs where they are wanted and known.
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

/// The thread's name.
pub(crate) fn thread_name(profile: &Profile, comm: Name) -> String {
    profile.names[comm].to_string()
}

/// The wakers of a sample, the one who ended the wait first.
pub(crate) fn wakers<'a>(profile: &'a Profile, sample: &Sample) -> &'a [Waker] {
    sample.wakers.map_or(&[], |wakers| &profile.wakers[wakers])
}

/// The last component of a path; of a name in brackets what is in them.
pub(crate) fn file_name(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    let inside = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    inside.unwrap_or(name)
}

/// The source file and the line of a frame, as far as both are known.
pub(crate) fn source<'a>(profile: &'a Profile, frame: &Frame) -> Option<(&'a str, u32)> {
    let file = profile.functions[frame.function?].file?;
    Some((&profile.names[file], frame.line?.get()))
}

/// A frame's name, with what is asked for behind it.
pub(crate) fn frame_name(profile: &Profile, frame: &Frame, options: &Options) -> String {
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

/// Returns the frame on top of a stack that says why its thread was blocked, where that is asked
/// for and known.
pub(crate) fn reason_frame(
    profile: &Profile,
    sample: &Sample,
    options: &Options,
) -> Option<String> {
    let wait = options.reasons.then(|| profile.wait(sample)).flatten()?;
    Some(text::frame(&format!("[{}]", wait_text(profile, wait))).into_owned())
}

/// The names of frames, each made once.
pub(crate) struct FrameNames<'a> {
    profile: &'a Profile,
    options: &'a Options,
    /// By the places of frames.
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

    /// Returns a frame's name, with what is asked for.
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

    /// Returns those of a stack from root to leaf.
    pub(crate) fn stack(&self, stack: Stack) -> Vec<&str> {
        let is_delimited =
            self.options.delimited && !stack.user.is_empty() && !stack.kernel.is_empty();
        let names = self.part(stack.user);
        let names = names.chain(is_delimited.then_some(DELIMITER));
        names.chain(self.part(stack.kernel)).collect()
    }
}
