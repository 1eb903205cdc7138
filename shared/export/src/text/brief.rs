//! Stacks and wakers on one line.

use profile::{Frame, FrameKind, Profile, Stack, StackId, Waker, marker, text};

use super::cut::{cut, cut_middle};

/// Number of user frames shown from the leaf on. Further interpreted functions follow until the
/// text has this many interpreted functions.
const USER_FRAMES: usize = 4;
/// Mark in place of frames that are not shown.
const LEFT_OUT: &str = "…";

/// Returns a stack on one line, leaf first: the function that waits, and its callers. Interpreted
/// functions follow, because the interpreter's own functions are the same in every program.
pub(crate) fn brief(profile: &Profile, stack: Stack) -> String {
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
pub(crate) fn waker_text(profile: &Profile, waker: &Waker) -> String {
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

/// Returns the functions of a stack that a person would name, innermost first, in at most `most`
/// characters. The text leaves out internals of the C library, an interpreter's own functions, and
/// functions that start threads and programs. Names are shortened.
pub(crate) fn place(profile: &Profile, stack: Stack, most: usize) -> String {
    let frames: Vec<&Frame> = profile.frames_of(stack.user).rev().collect();
    let mut names = if frames.is_empty() {
        let kernel: Vec<&str> = frame_names(profile, stack.kernel).rev().collect();
        let first = kernel.iter().position(|name| !is_scheduler(name));
        let names = kernel.into_iter().skip(first.unwrap_or(0));
        names.map(short_name).collect()
    } else {
        let names = user_names(profile, &frames);
        let length: usize = names.iter().map(|name| name.chars().count() + 3).sum();
        if length > most + 3 {
            user_names(profile, &without_library(profile, &frames))
        } else {
            names
        }
    };
    // Adjacent functions of one file without names have the same text.
    names.dedup_by(|one, other| one == other && one.starts_with('['));
    if names.is_empty() {
        return cut(marker::NO_STACK, most).into_owned();
    }
    join_names(&names, most)
}

/// Removes functions of Python's library except the innermost Python function.
fn without_library<'a>(profile: &Profile, frames: &[&'a Frame]) -> Vec<&'a Frame> {
    let mut is_innermost = true;
    let mut is_own = |frame: &&&Frame| {
        if !matches!(frame.kind, FrameKind::Interpreted(_)) {
            return true;
        }
        let file = frame.function.and_then(|id| profile.functions[id].file);
        let is_library = file.is_some_and(|file| profile.names[file].contains("/lib/python3"));
        std::mem::take(&mut is_innermost) || !is_library
    };
    let own: Vec<&Frame> = frames
        .iter()
        .filter(|frame| is_own(frame))
        .copied()
        .collect();
    // If at most one Python function would remain, all functions stay.
    let number = |frames: &[&Frame]| {
        let python = frames
            .iter()
            .filter(|frame| matches!(frame.kind, FrameKind::Interpreted(_)));
        python.count()
    };
    if number(&own) > 1 {
        own
    } else {
        frames.to_vec()
    }
}

/// Returns the names of the user frames that a person would name.
fn user_names(profile: &Profile, frames: &[&Frame]) -> Vec<String> {
    let is_python = |frame: &&Frame| matches!(frame.kind, FrameKind::Interpreted(_));
    let native = frames.iter().position(is_python).unwrap_or(frames.len());
    let (native, rest) = frames.split_at(native);
    let name = |frame: &&Frame| short_name(profile.name(frame));
    let is_python_program = !rest.is_empty();
    // The leaf stays even if it is a start function: as the leaf it starts another thread or
    // program.
    let start = native.iter().skip(1);
    let start = start.take_while(|frame| !is_start(profile.name(frame)));
    let native = &native[..native.len().min(start.count() + 1)];
    let public = native
        .iter()
        .position(|frame| !is_internal(profile.name(frame)));
    let native = native[public.unwrap_or(0)..].iter();
    let near = if is_python_program {
        NEAR_PYTHON
    } else {
        usize::MAX
    };
    let started = rest.iter().rposition(|frame| {
        is_python(frame) && !profile.name(frame).starts_with("threading.py:Thread.")
    });
    let rest = &rest[..started.map_or(rest.len(), |last| last + 1)];
    let python = rest.iter().filter(|frame| is_python(frame));
    let names: Vec<String> = native
        .take(near)
        .map(name)
        .chain(python.map(name))
        .collect();
    match (names.is_empty(), frames.first()) {
        (true, Some(leaf)) => vec![name(leaf)],
        _ => names,
    }
}

/// Joins names, and leaves out names at the end that do not fit.
fn join_names(names: &[String], most: usize) -> String {
    const ARROW: &str = " ← ";
    let all = names.join(ARROW);
    if all.chars().count() <= most {
        return all;
    }
    let room = most.saturating_sub(ARROW.chars().count() + LEFT_OUT.chars().count());
    let mut text = String::new();
    let mut length = 0;
    for name in names {
        let arrow = if text.is_empty() { "" } else { ARROW };
        let added = arrow.chars().count() + name.chars().count();
        if length + added > room {
            break;
        }
        length += added;
        text.push_str(arrow);
        text.push_str(name);
    }
    if text.is_empty() {
        return cut(&all, most).into_owned();
    }
    text + ARROW + LEFT_OUT
}

/// Number of native functions shown before functions that an interpreter runs.
const NEAR_PYTHON: usize = 2;
/// Maximum characters of a function's name.
const NAME: usize = 44;

/// Returns a function's name without template arguments and parameters.
pub(crate) fn short_name(name: &str) -> String {
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

/// Returns whether a function is internal to the C library, below the function that the program
/// called.
fn is_internal(name: &str) -> bool {
    name.starts_with("__") || name == "syscall"
}

/// Returns whether a function starts threads or programs.
fn is_start(name: &str) -> bool {
    matches!(name, "_start" | "start_thread" | "clone" | "clone3")
        || name.starts_with("__libc_start")
        || name.starts_with("__clone")
}

/// Returns the functions of a waker's stack that a person would name.
pub(crate) fn waker_place(profile: &Profile, waker: &Waker, most: usize) -> String {
    place(profile, waker.stack, most)
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
    fn a_place_is_what_a_person_would_name() {
        let place = |names: &[&str], most| {
            let mut profile = Profile::new(Unit::Nanoseconds);
            let stack = crate::fixture::stack(&mut profile, names, &["do_wait", "schedule"]);
            super::place(&profile, stack, most)
        };
        let database = [
            "__clone3",
            "start_thread",
            "handle(THD*)",
            "std::map<int, long>::find(int const&)",
            "[mariadbd]",
            "[mariadbd]",
            "fdatasync",
            "__syscall_cancel",
        ];
        assert_eq!(
            place(&database, 80),
            "fdatasync ← [mariadbd] ← std::map<…>::find ← handle"
        );
        assert_eq!(place(&database, 30), "fdatasync ← [mariadbd] ← …");
        assert_eq!(place(&database, 5), "fdat…");
        assert_eq!(place(&["__poll"], 20), "__poll");
        assert_eq!(place(&["_start"], 20), "_start");
        assert_eq!(place(&[], 20), "do_wait");
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
