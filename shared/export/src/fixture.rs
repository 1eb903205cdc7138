//! Small profiles that the formats' tests share.
#![allow(clippy::unwrap_used)]

use profile::{FrameKind, Profile, Sample, Stack, State, ThreadId, Unit, Waker, Weight, marker};

pub(crate) fn stack(profile: &mut Profile, user: &[&str], kernel: &[&str]) -> Stack {
    let mut frames = |names: &[&str], kind| -> Vec<_> {
        let frames = names.iter().map(|name| profile.frame(name, kind));
        frames.collect()
    };
    let user = frames(user, FrameKind::User);
    let kernel = frames(kernel, FrameKind::Kernel);
    Stack {
        user: profile.stacks.add(user),
        kernel: profile.stacks.add(kernel),
    }
}

pub(crate) fn sample(
    profile: &mut Profile,
    comm: &str,
    user: &[&str],
    kernel: &[&str],
    state: Option<State>,
) -> Sample {
    let comm = profile.names.id(profile::text::comm(comm.as_bytes()));
    let thread = Some(ThreadId { pid: 7, tid: 8 });
    Sample {
        state,
        ..Sample::new(comm, thread, stack(profile, user, kernel))
    }
}

pub(crate) fn weight(value: u64) -> Weight {
    Weight {
        value,
        ..Weight::default()
    }
}

/// Returns a profile of blocked time with awkward names, in nanoseconds.
pub(crate) fn blocked() -> Profile {
    let mut profile = Profile::new(Unit::Nanoseconds);
    let user = ["main", "wait(int; char)"];
    for (comm, user, kernel, value) in [
        ("worker", &user[..], &["schedule"][..], 2_500_999),
        ("my;thread", &[], &["schedule"], 1_000),
        ("worker", &["main"], &[], 999),
        ("", &[], &[], 3_000),
    ] {
        let mut sample = sample(&mut profile, comm, user, kernel, None);
        if comm == "my;thread" {
            sample.stack.user = profile.marker(marker::MISSED_USER).user;
        }
        profile.add(sample, weight(value));
    }
    profile
}

/// Returns a profile with a wait that `b` ended, after a timer woke `b`, and a wait that goes on.
pub(crate) fn woken() -> Profile {
    let mut profile = Profile::new(Unit::Nanoseconds);
    let waker = |profile: &mut Profile, comm, thread, user: &[&str], kernel: &[&str]| Waker {
        comm: profile.names.text(comm),
        thread,
        stack: stack(profile, user, kernel),
    };
    let id = Some(ThreadId { pid: 5, tid: 6 });
    let b = waker(&mut profile, "b", id, &["main", "put"], &["wake"]);
    let timer = waker(&mut profile, marker::TIMER, None, &[], &["tick"]);
    let nobody = waker(&mut profile, marker::STILL_BLOCKED, None, &[], &[]);
    let mut waits = sample(
        &mut profile,
        "a",
        &["main"],
        &["wait"],
        Some(State::Blocked),
    );
    waits.wakers = Some(profile.wakers.id([b, timer].into()));
    profile.add(waits, weight(7_000));
    let mut sleeps = sample(&mut profile, "a", &[], &[], None);
    sleeps.wakers = Some(profile.wakers.id([nobody].into()));
    profile.add(sleeps, weight(1_000));
    profile
}

pub(crate) fn written(body: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>) -> String {
    let mut bytes = Vec::new();
    body(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}
