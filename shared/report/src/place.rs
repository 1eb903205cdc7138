//! Functions that a person would name in a stack.

use export::text::brief::{LEFT_OUT, frame_names, is_scheduler, short_name};
use export::text::cut::cut;
use profile::{Frame, FrameKind, Profile, Stack, Waker, marker};

/// Number of native functions shown before functions that an interpreter runs.
const NEAR_PYTHON: usize = 2;

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

#[cfg(test)]
mod tests {
    use profile::Unit;

    use crate::fixture::stack;

    use super::*;

    #[test]
    fn a_place_is_what_a_person_would_name() {
        let place = |names: &[&str], most| {
            let mut profile = Profile::new(Unit::Nanoseconds);
            let stack = stack(&mut profile, names, &["do_wait", "schedule"]);
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
}
