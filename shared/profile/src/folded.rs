//! Reads folded text back into a [`Profile`].
//!
//! One line is one stack: `comm;root;…;leaf VALUE`. The value follows the last space. The
//! reader understands these conventions:
//!
//! - a first field `comm-PID/TID`, if the caller asks for threads;
//! - a leaf that ends in `_[c]` (running), `_[r]` (runnable) or `_[o]` (blocked);
//! - kernel frames: frames that end in `_[k]`, and all frames after a `-`;
//! - inlined frames: frames that end in `_[i]`;
//! - wakers: after a `--`, the frames of a waker from leaf to root, then its name.

use std::io::{self, BufRead};

use thiserror::Error;

use crate::{
    Frame, FrameKind, Profile, Sample, Stack, State, ThreadId, Unit, Waker, Weight, marker,
};

/// Frame that separates user frames from kernel frames.
pub const DELIMITER: &str = "-";
/// Frame that separates a stack from the stack of its waker.
pub const WAKER_DELIMITER: &str = "--";
/// Suffix of a kernel frame.
pub const KERNEL_SUFFIX: &str = "_[k]";
/// Suffix of a frame whose function the compiler inlined into its caller.
pub const INLINED_SUFFIX: &str = "_[i]";

/// Reason why folded text cannot be read.
#[derive(Debug, Error)]
pub enum Error {
    /// The reader failed.
    #[error("cannot read folded stacks: {0}")]
    Read(#[from] io::Error),
    /// A line is not a stack and a value.
    #[error("line {number} of the folded stacks, `{line}`: {problem}")]
    Line {
        /// Number of the line, counted from 1.
        number: usize,
        /// Text of the line.
        line: String,
        /// Fault of the line.
        problem: &'static str,
    },
}

/// Returns the suffix of a leaf in this state.
#[must_use]
pub fn state_suffix(state: State) -> &'static str {
    match state {
        State::Running => "_[c]",
        State::Runnable => "_[r]",
        State::Blocked => "_[o]",
    }
}

/// Reads folded text to its end. The values are in `unit`. With `per_thread`, the first field
/// has the form `comm-PID/TID`. Empty lines are skipped.
///
/// # Errors
/// The reader fails, or a line is not a stack and a value.
pub fn read(mut text: impl BufRead, unit: Unit, per_thread: bool) -> Result<Profile, Error> {
    let mut profile = Profile::new(unit);
    let mut bytes = Vec::new();
    for number in 1.. {
        bytes.clear();
        if text.read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        let line = String::from_utf8_lossy(&bytes);
        let line = line.trim_end_matches(['\n', '\r']);
        if line.is_empty() {
            continue;
        }
        let (sample, value) =
            parse(line, per_thread, &mut profile).map_err(|problem| Error::Line {
                number,
                line: line.to_owned(),
                problem,
            })?;
        let events = match unit {
            Unit::Samples => value,
            // The text does not contain the number of intervals.
            Unit::Nanoseconds => 0,
        };
        profile.add(
            sample,
            Weight {
                value,
                events,
                ..Weight::default()
            },
        );
    }
    Ok(profile)
}

fn parse(
    line: &str,
    per_thread: bool,
    profile: &mut Profile,
) -> Result<(Sample, u64), &'static str> {
    let (path, value) = line.rsplit_once(' ').ok_or("a value is missing")?;
    let value = value
        .parse()
        .map_err(|_| "the value is not a whole number")?;
    let (first, frames) = match path.split_once(';') {
        Some((first, frames)) => (first, Some(frames)),
        None => (path, None),
    };
    let (comm, thread) = if per_thread {
        let (comm, thread) =
            split_thread(first).ok_or("the first field does not end in -PID/TID")?;
        (comm, Some(thread))
    } else {
        (first, None)
    };
    let frames: Vec<&str> = frames.map_or(Vec::new(), |frames| frames.split(';').collect());
    let mut parts = frames.split(|frame| *frame == WAKER_DELIMITER);
    let (frames, state) = split_state(parts.next().unwrap_or_default());
    let wakers = parts
        .map(|part| read_waker(part, per_thread, profile))
        .collect::<Result<Box<_>, _>>()?;
    let comm = profile.names.text(comm);
    let sample = Sample {
        state,
        wakers: (!wakers.is_empty()).then(|| profile.wakers.id(wakers)),
        ..Sample::new(comm, thread, read_stack(&frames, profile))
    };
    Ok((sample, value))
}

/// Reads a waker: its frames from leaf to root, then its name.
fn read_waker(
    frames: &[&str],
    per_thread: bool,
    profile: &mut Profile,
) -> Result<Waker, &'static str> {
    let (comm, frames) = frames.split_last().ok_or("a waker has no name")?;
    let (comm, thread) = match split_thread(comm).filter(|_| per_thread) {
        Some((comm, thread)) => (comm, Some(thread)),
        None => (*comm, None),
    };
    let frames: Vec<&str> = frames.iter().rev().copied().collect();
    Ok(Waker {
        comm: profile.names.text(comm),
        thread,
        stack: read_stack(&frames, profile),
    })
}

/// Splits `comm-PID/TID`. The comm may itself contain `-` and `/`.
fn split_thread(field: &str) -> Option<(&str, ThreadId)> {
    let (rest, tid) = field.rsplit_once('/')?;
    let (comm, pid) = rest.rsplit_once('-')?;
    let thread = ThreadId {
        pid: pid.parse().ok()?,
        tid: tid.parse().ok()?,
    };
    Some((comm, thread))
}

fn split_state<'a>(frames: &[&'a str]) -> (Vec<&'a str>, Option<State>) {
    let mut frames = frames.to_vec();
    let mut found = None;
    if let Some(leaf) = frames.last_mut() {
        for state in [State::Running, State::Runnable, State::Blocked] {
            if let Some(name) = leaf.strip_suffix(state_suffix(state)) {
                *leaf = name;
                found = Some(state);
                break;
            }
        }
    }
    (frames, found)
}

/// Adds the stack of these frames, root first.
fn read_stack(frames: &[&str], profile: &mut Profile) -> Stack {
    let mut below_delimiter = false;
    let mut stack = Stack::default();
    for &text in frames {
        if text == DELIMITER && !below_delimiter {
            below_delimiter = true;
            continue;
        }
        let (name, is_inlined) = without(text, INLINED_SUFFIX);
        let (name, annotated) = without(name, KERNEL_SUFFIX);
        let kind = if marker::is_marker(name) {
            FrameKind::Marker
        } else if annotated || below_delimiter {
            FrameKind::Kernel
        } else {
            FrameKind::User
        };
        let in_kernel = kind == FrameKind::Kernel || name == marker::MISSED_KERNEL;
        let part = if in_kernel || !stack.kernel.is_empty() {
            &mut stack.kernel
        } else {
            &mut stack.user
        };
        let name = profile.names.text(name);
        let frame = profile.frames.id(Frame {
            is_inlined,
            ..Frame::named(name, kind)
        });
        *part = profile.stacks.called(*part, frame);
    }
    stack
}

/// Returns the text without its ending, and whether it had the ending.
fn without<'a>(text: &'a str, ending: &str) -> (&'a str, bool) {
    match text.strip_suffix(ending) {
        Some(rest) => (rest, true),
        None => (text, false),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::StackId;

    fn one(text: &str, per_thread: bool) -> (Profile, Sample, u64) {
        let profile = read(text.as_bytes(), Unit::Nanoseconds, per_thread).unwrap();
        assert_eq!(profile.samples.len(), 1);
        let (sample, value) = profile.values().next().unwrap();
        (profile, sample, value)
    }

    fn kinds(profile: &Profile, stack: StackId) -> Vec<(&str, FrameKind)> {
        let frames = profile.frames_of(stack);
        frames
            .map(|frame| (profile.name(frame), frame.kind))
            .collect()
    }

    #[test]
    fn delimiter_and_markers() {
        let (profile, sample, _) = one("x;[Missed User Stack];-;vfs_read;schedule_[r] 1", false);
        assert_eq!(sample.state, Some(State::Runnable));
        let user = kinds(&profile, sample.stack.user);
        assert_eq!(user, [("[Missed User Stack]", FrameKind::Marker)]);
        assert_eq!(
            kinds(&profile, sample.stack.kernel),
            [
                ("vfs_read", FrameKind::Kernel),
                ("schedule", FrameKind::Kernel)
            ]
        );
    }

    #[test]
    fn a_missed_kernel_stack_is_one_of_the_kernel() {
        let (profile, sample, _) = one("x;main;[Missed Kernel Stack] 1", false);
        assert_eq!(
            kinds(&profile, sample.stack.user),
            [("main", FrameKind::User)]
        );
        let kernel = kinds(&profile, sample.stack.kernel);
        assert_eq!(kernel, [("[Missed Kernel Stack]", FrameKind::Marker)]);
    }

    #[test]
    fn comm_alone_and_comm_with_spaces() {
        let (profile, sample, value) = one("my thread 2 7", false);
        assert_eq!((&*profile.names[sample.comm], value), ("my thread 2", 7));
        assert!(sample.stack == Stack::default() && sample.state.is_none());
    }

    #[test]
    fn bytes_that_are_not_text_do_no_harm() {
        let profile = read(&b"x\xff;f 2\n"[..], Unit::Samples, false).unwrap();
        let (sample, _) = profile.values().next().unwrap();
        assert_eq!(&*profile.names[sample.comm], "x\u{fffd}");
    }

    #[test]
    fn bad_lines_are_told_by_number() {
        let problem = |text: &str, per_thread| {
            read(text.as_bytes(), Unit::Samples, per_thread)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            problem("a;b 1\nnothing", false),
            "line 2 of the folded stacks, `nothing`: a value is missing"
        );
        assert!(problem("a;b -1", false).contains("not a whole number"));
        assert!(problem("a;b 1.5", false).contains("line 1"));
        assert!(problem("\n\na-1/x;b 1", true).contains("line 3"));
        assert!(problem("a;b 1", true).contains("-PID/TID"));
    }
}
