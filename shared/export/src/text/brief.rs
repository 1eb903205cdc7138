//! Stacks and wakers on one line.

use profile::{Frame, FrameKind, Profile, Stack, StackId, Waker, marker, text};

/// How many user frames are shown from the leaf on, and how many functions that an
/// interpreter runs.
const USER_FRAMES: usize = 4;
/// Stands for frames that are not shown.
const LEFT_OUT: &str = "…";

/// Returns a stack on one line, leaf first: what it waits in, and who called for that. Where an
/// interpreter did, functions that it runs follow: its own are the same in every program.
pub(crate) fn brief(profile: &Profile, stack: Stack) -> String {
    let kernel: Vec<&str> = frame_names(profile, stack.kernel).rev().collect();
    // Every blocked stack ends in the scheduler; what called it tells more.
    let leaf = kernel.iter().find(|name| !is_scheduler(name));
    let mut names: Vec<_> = (leaf.or(kernel.first()).into_iter())
        .map(|name| text::frame(name))
        .collect();

    let user: Vec<&Frame> = profile.frames_of(stack.user).rev().collect();
    let (near, far) = user.split_at(user.len().min(USER_FRAMES));
    let is_interpreted = |frame: &&&Frame| matches!(frame.kind, FrameKind::Interpreted(_));
    let wanted = USER_FRAMES - near.iter().filter(is_interpreted).count();
    let functions = far
        .iter()
        .enumerate()
        .filter(|(_, frame)| is_interpreted(frame));
    let functions: Vec<(usize, &&Frame)> = functions.take(wanted).collect();

    names.extend((near.iter()).map(|frame| text::frame(profile.name(frame))));
    if functions.first().is_some_and(|(at, _)| *at > 0) {
        names.push(LEFT_OUT.into());
    }
    names.extend((functions.iter()).map(|(_, frame)| text::frame(profile.name(frame))));
    let shown = functions.last().map_or(0, |(at, _)| at + 1);
    if shown < far.len() {
        names.push(LEFT_OUT.into());
    }
    if names.is_empty() {
        return marker::NO_STACK.to_owned();
    }
    names.join(" ← ")
}

/// Returns who ended a wait, and where that thread was: `writer in unlock ← book ← main`.
pub(crate) fn waker_text(profile: &Profile, waker: &Waker) -> String {
    let comm = &profile.names[waker.comm];
    if waker.thread.is_none() {
        return comm.to_string();
    }
    // What a waker called in the kernel is the same for all of a kind.
    let stack = if waker.stack.user.is_empty() {
        waker.stack
    } else {
        Stack {
            kernel: StackId::EMPTY,
            ..waker.stack
        }
    };
    format!("{comm} in {}", brief(profile, stack))
}

fn frame_names(profile: &Profile, part: StackId) -> impl DoubleEndedIterator<Item = &str> {
    let frames = profile.frames_of(part);
    frames.map(|frame| profile.name(frame))
}

fn is_scheduler(name: &str) -> bool {
    let name = name.trim_start_matches('_');
    [
        "schedule",
        "io_schedule",
        "preempt_schedule",
        "finish_task_switch",
    ]
    .iter()
    .any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use profile::{LanguageName, Unit};

    use super::*;

    const LANGUAGE: LanguageName = LanguageName::new("snake").unwrap();

    /// Returns on one line the stack of these user frames, leaf first, of which those of a language
    /// are in files.
    fn line(names: &str) -> String {
        let mut profile = Profile::new(Unit::Nanoseconds);
        let mut user = StackId::EMPTY;
        for name in names.split_whitespace().rev() {
            let kind = match name.contains(".py:") {
                true => FrameKind::Interpreted(LANGUAGE),
                false => FrameKind::User,
            };
            let frame = Frame::named(profile.names.text(name), kind);
            let frame = profile.frames.id(frame);
            user = profile.stacks.called(user, frame);
        }
        let kernel = StackId::EMPTY;
        brief(&profile, Stack { user, kernel })
    }

    #[test]
    fn functions_of_an_interpreter_are_there_however_far_they_are() {
        for (stack, expected) in [
            ("a x.py:f b", "a ← x.py:f ← b"),
            ("a x.py:f x.py:g c d e", "a ← x.py:f ← x.py:g ← c ← …"),
            ("a b c d x.py:f", "a ← b ← c ← d ← x.py:f"),
            (
                "a b c d e f x.py:f eval x.py:g x.py:h eval x.py:i main _start",
                "a ← b ← c ← d ← … ← x.py:f ← x.py:g ← x.py:h ← x.py:i ← …",
            ),
            (
                "a x.py:f eval b eval x.py:g x.py:h x.py:i x.py:j",
                "a ← x.py:f ← eval ← b ← … ← x.py:g ← x.py:h ← x.py:i ← …",
            ),
        ] {
            assert_eq!(line(stack), expected);
        }
    }
}
