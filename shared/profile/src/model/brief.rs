//! Stacks, and who ended waits, on one line.

use crate::{Profile, Stack, StackId, Waker, marker, text};

/// How many user frames are shown.
const USER_FRAMES: usize = 4;

impl Profile {
    /// A stack on one line, leaf first: what it waits in, and who called for that.
    #[must_use]
    pub fn brief(&self, stack: Stack) -> String {
        let kernel: Vec<&str> = self.frame_names(stack.kernel).rev().collect();
        // Every blocked stack ends in the scheduler; what called it tells more.
        let leaf = kernel.iter().find(|name| !is_scheduler(name));
        let mut callers = self.frame_names(stack.user).rev();
        let mut names: Vec<_> = (leaf.or(kernel.first()).copied().into_iter())
            .chain(callers.by_ref().take(USER_FRAMES))
            .map(text::frame)
            .collect();
        if callers.next().is_some() {
            names.push("…".into());
        }
        if names.is_empty() {
            return marker::NO_STACK.to_owned();
        }
        names.join(" ← ")
    }

    /// Who ended a wait, and where it was: `writer in unlock ← book ← main`.
    #[must_use]
    pub fn told_of_waker(&self, waker: &Waker) -> String {
        let comm = &self.names[waker.comm];
        if marker::is_no_waker(comm) {
            return comm.to_string();
        }
        // What it called in the kernel is the same for all of a kind.
        let stack = match waker.stack.user.is_empty() {
            true => waker.stack,
            false => Stack {
                kernel: StackId::EMPTY,
                ..waker.stack
            },
        };
        format!("{comm} in {}", self.brief(stack))
    }

    fn frame_names(&self, part: StackId) -> impl DoubleEndedIterator<Item = &str> {
        let frames = self.frames_of(part);
        frames.map(|frame| self.name(frame))
    }
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
