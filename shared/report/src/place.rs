//! Functions that a person would name in a stack.

use export::text::brief::{LEFT_OUT, frame_names, is_scheduler, short_name};
use export::text::cut::cut;
use languages::Language;
use profile::{Frame, FrameKind, Profile, Stack, Waker, marker};

/// Number of native functions shown before functions that an interpreter runs.
const NEAR_INTERPRETED: usize = 2;

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

/// Returns the names of a stack's interpreted functions that belong to the program, innermost first.
/// Functions of the languages' libraries, and functions without a file, are left out.
pub(crate) fn own_functions(profile: &Profile, stack: Stack) -> Vec<String> {
    let frames = profile.frames_of(stack.user).rev();
    let own = frames.filter(|frame| {
        let file = frame.function.and_then(|id| profile.functions[id].file);
        let known = language(frame).zip(file);
        known.is_some_and(|(language, file)| !language.is_library(&profile.names[file]))
    });
    own.map(|frame| short_name(profile.name(frame))).collect()
}

/// Removes functions of the languages' libraries except the innermost interpreted function.
fn without_library<'a>(profile: &Profile, frames: &[&'a Frame]) -> Vec<&'a Frame> {
    let mut is_innermost = true;
    let mut is_own = |frame: &&&Frame| {
        if !is_interpreted(frame) {
            return true;
        }
        let file = frame.function.and_then(|id| profile.functions[id].file);
        let is_library = language(frame)
            .zip(file)
            .is_some_and(|(language, file)| language.is_library(&profile.names[file]));
        std::mem::take(&mut is_innermost) || !is_library
    };
    let own: Vec<&Frame> = frames
        .iter()
        .filter(|frame| is_own(frame))
        .copied()
        .collect();
    // If at most one interpreted function would remain, all functions stay.
    let interpreted = own.iter().filter(|frame| is_interpreted(frame));
    if interpreted.count() > 1 {
        own
    } else {
        frames.to_vec()
    }
}

/// Returns the names of the user frames that a person would name.
fn user_names(profile: &Profile, frames: &[&Frame]) -> Vec<String> {
    let native = frames.iter().position(|frame| is_interpreted(frame));
    let (native, rest) = frames.split_at(native.unwrap_or(frames.len()));
    let name = |frame: &&Frame| short_name(profile.name(frame));
    let is_interpreted_program = !rest.is_empty();
    // The leaf stays even if it is a start function: as the leaf it starts another thread or
    // program.
    let start = native.iter().skip(1);
    let start = start.take_while(|frame| !is_start(profile.name(frame)));
    let native = &native[..native.len().min(start.count() + 1)];
    let public = native
        .iter()
        .position(|frame| !is_internal(profile.name(frame)));
    let native = native[public.unwrap_or(0)..].iter();
    let near = if is_interpreted_program {
        NEAR_INTERPRETED
    } else {
        usize::MAX
    };
    let started = rest.iter().rposition(|frame| {
        let name = profile.name(frame);
        is_interpreted(frame) && !language(frame).is_some_and(|known| known.starts_threads(name))
    });
    let rest = &rest[..started.map_or(rest.len(), |last| last + 1)];
    let interpreted = rest.iter().filter(|frame| is_interpreted(frame));
    let names: Vec<String> = native
        .take(near)
        .map(name)
        .chain(interpreted.map(name))
        .collect();
    match (names.is_empty(), frames.first()) {
        (true, Some(leaf)) => vec![name(leaf)],
        _ => names,
    }
}

fn is_interpreted(frame: &Frame) -> bool {
    matches!(frame.kind, FrameKind::Interpreted(_))
}

/// Returns the language of an interpreted frame, if it is known.
fn language(frame: &Frame) -> Option<&'static dyn Language> {
    match frame.kind {
        FrameKind::Interpreted(name) => languages::by_name(name),
        _ => None,
    }
}

/// Joins names, and leaves out names at the end that do not fit.
pub(crate) fn join_names(names: &[impl AsRef<str>], most: usize) -> String {
    const ARROW: &str = " ← ";
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
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
