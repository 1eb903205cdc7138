//! Stacks and wakers on one line.

use profile::{Frame, FrameKind, Profile, Stack, StackId, Waker, marker, text};

use super::cut::cut_middle;

/// Number of user frames shown from the leaf on. Further interpreted functions follow until the
/// text has this many interpreted functions.
const USER_FRAMES: usize = 4;
/// Mark in place of frames that are not shown.
pub const LEFT_OUT: &str = "…";

/// Returns a stack on one line, leaf first: the function that waits, and its callers. Interpreted
/// functions follow, because the interpreter's own functions are the same in every program.
pub fn brief(profile: &Profile, stack: Stack) -> String {
    let kernel: Vec<&str> = frame_names(profile, stack.kernel).rev().collect();
    // Every blocked stack ends in the scheduler. The function that called the scheduler tells more.
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

/// Returns the waker's name, and its stack: `writer in unlock ← book ← main`.
pub fn waker_text(profile: &Profile, waker: &Waker) -> String {
    let comm = &profile.names[waker.comm];
    if waker.thread.is_none() {
        return comm.to_string();
    }
    // Wakers of one kind call the same kernel functions, which tell nothing.
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

/// Maximum characters of a function's name.
const NAME: usize = 44;

/// Returns a function's name without template arguments and parameters.
pub fn short_name(name: &str) -> String {
    let name = text::frame(name);
    if name.starts_with('[') || name.contains("operator") || name.contains(".py:") {
        return cut_middle(&name, NAME).into_owned();
    }
    let name = name.replace("(anonymous namespace)", "{anonymous}");
    let mut short = String::new();
    let mut depth = 0_usize;
    for character in name.chars() {
        match character {
            '(' if depth == 0 && !short.is_empty() => break,
            '<' => {
                if depth == 0 {
                    short.push_str("<…>");
                }
                depth += 1;
            }
            '>' => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            other => short.push(other),
        }
    }
    cut_middle(&short, NAME).into_owned()
}

/// Iterates over the names of frames from root to leaf.
pub fn frame_names(profile: &Profile, part: StackId) -> impl DoubleEndedIterator<Item = &str> {
    let frames = profile.frames_of(part);
    frames.map(|frame| profile.name(frame))
}

/// Returns whether a kernel function is the scheduler's.
pub fn is_scheduler(name: &str) -> bool {
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

    /// Returns the stack of these user frames on one line, leaf first. Frames named with `.py:` are
    /// interpreted.
    fn line(names: &str) -> String {
        let mut profile = Profile::new(Unit::Nanoseconds);
        let mut user = StackId::EMPTY;
        for name in names.split_whitespace().rev() {
            let kind = if name.contains(".py:") {
                FrameKind::Interpreted(LANGUAGE)
            } else {
                FrameKind::User
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
