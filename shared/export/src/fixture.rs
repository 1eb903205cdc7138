//! A small profile that the formats' tests share.
#![allow(clippy::unwrap_used)]

use profile::{Frame, FrameKind, Profile, Stack, State, ThreadId, Unit, Waker, Weight, marker};

pub(crate) fn frame(name: &str, kind: FrameKind) -> Frame {
    Frame {
        name: name.into(),
        module: None,
        kind,
    }
}

pub(crate) fn stack(comm: &str, user: &[&str], kernel: &[&str], state: Option<State>) -> Stack {
    let user = user.iter().map(|name| frame(name, FrameKind::User));
    let kernel = kernel.iter().map(|name| frame(name, FrameKind::Kernel));
    Stack {
        comm: comm.into(),
        thread: Some(ThreadId { pid: 7, tid: 8 }),
        frames: user.chain(kernel).collect(),
        state,
        wakers: Vec::new(),
    }
}

pub(crate) fn weight(value: u64) -> Weight {
    Weight {
        value,
        ..Weight::default()
    }
}

/// Blocked time with awkward names, in nanoseconds.
pub(crate) fn blocked() -> Profile {
    let mut profile = Profile::new(Unit::Nanoseconds);
    let missed = Stack {
        frames: std::sync::Arc::from([
            Frame::marker(marker::MISSED_USER),
            frame("schedule", FrameKind::Kernel),
        ]),
        ..stack("my;thread", &[], &[], None)
    };
    profile.add(
        stack("worker", &["main", "wait(int; char)"], &["schedule"], None),
        weight(2_500_999),
    );
    profile.add(missed, weight(1_000));
    profile.add(stack("worker", &["main"], &[], None), weight(999));
    profile.add(stack("", &[], &[], None), weight(3_000));
    profile
}

/// A wait that `b` ended, which a timer had woken, and one that goes on.
pub(crate) fn woken() -> Profile {
    let mut profile = Profile::new(Unit::Nanoseconds);
    let frames = |user: &[&str], kernel: &[&str]| stack("", user, kernel, None).frames;
    let b = Waker {
        comm: "b".into(),
        thread: Some(ThreadId { pid: 5, tid: 6 }),
        frames: frames(&["main", "put"], &["wake"]),
    };
    let timer = Waker {
        comm: marker::TIMER.into(),
        thread: None,
        frames: frames(&[], &["tick"]),
    };
    let still_blocked = Waker {
        comm: marker::STILL_BLOCKED.into(),
        frames: frames(&[], &[]),
        ..timer.clone()
    };
    let mut waits = stack("a", &["main"], &["wait"], Some(State::Blocked));
    waits.wakers = vec![b, timer];
    profile.add(waits, weight(7_000));
    let mut sleeps = stack("a", &[], &[], None);
    sleeps.wakers = vec![still_blocked];
    profile.add(sleeps, weight(1_000));
    profile
}

pub(crate) fn written(body: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>) -> String {
    let mut bytes = Vec::new();
    body(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}
