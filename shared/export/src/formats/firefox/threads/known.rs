//! Stacks and texts that the file has of a thread.

use std::collections::HashMap;

use profile::{Frame, Id, Sample, Stack, StackId, State, marker};

use super::{Threads, UNKNOWN, category};
use crate::firefox::file::{Category, StackHandle, StringHandle, ThreadHandle};
use crate::firefox::weights::Account;
use crate::lanes::waker;
use crate::measure::state_name;
use crate::text::brief::brief;
use crate::text::frames::thread_field;
use crate::text::options::Ids;
use crate::text::waits::{ended_by_text, kind_text, resource_text, wait_text};

/// A thread of the timeline, while it is added.
pub(super) struct Lane {
    pub(super) handle: ThreadHandle,
    pub(super) account: Account,
    pub(super) known: HashMap<Id<Sample>, Known>,
    /// Stacks in user space that the file has of this thread.
    user_stacks: HashMap<StackId, StackHandle>,
}

impl Lane {
    pub(super) fn new(handle: ThreadHandle) -> Lane {
        Lane {
            handle,
            account: Account::default(),
            known: HashMap::new(),
            user_stacks: HashMap::new(),
        }
    }
}

/// Handles in the file for a sample of one thread.
#[derive(Clone, Copy)]
pub(super) struct Known {
    pub(super) stack: Option<StackHandle>,
    /// The stack with a frame for the state on top.
    pub(super) labelled: Option<StackHandle>,
    pub(super) category: Category,
    pub(super) wait: StringHandle,
    pub(super) resource: StringHandle,
    pub(super) waker: StringHandle,
    pub(super) waker_stack: StringHandle,
}

impl Threads<'_> {
    /// Returns what the file has of a sample in a thread; adds it if it is new. Returns `None` if
    /// the profile has no such sample.
    pub(super) fn known(&mut self, lane: &mut Lane, id: Id<Sample>, state: State) -> Option<Known> {
        if let Some(known) = lane.known.get(&id) {
            return Some(*known);
        }
        let (sample, _) = self.profile.samples.row(id)?;
        let known = self.describe(lane, sample, Some(state));
        lane.known.insert(id, known);
        Some(known)
    }

    /// Adds the stacks and the texts of a sample. A frame for `state` is on top of a stack off the
    /// CPU.
    pub(super) fn describe(
        &mut self,
        lane: &mut Lane,
        sample: &Sample,
        state: Option<State>,
    ) -> Known {
        let profile = self.profile;
        let stack = self.stack(lane, sample.stack);
        let wait = profile.wait(sample);
        let is_idle = wait.is_some_and(|wait| wait.idleness.is_idle());
        let reason = wait.map(|wait| wait.kind.reason);
        let label_category = match state {
            Some(State::Blocked) if is_idle => Category::Idle(reason),
            Some(State::Blocked) => Category::Blocked(reason),
            Some(other) => category(other),
            None => Category::Other,
        };
        let label = match (state, wait) {
            (Some(State::Blocked), Some(wait)) => {
                let word = if is_idle { "idle" } else { "blocked" };
                Some(format!("[{word}: {}]", kind_text(profile, wait.kind)))
            }
            (Some(state @ (State::Blocked | State::Runnable)), _) => {
                Some(format!("[{}]", state_name(state)))
            }
            (Some(State::Running) | None, _) => {
                stack.is_none().then(|| marker::NO_STACK.to_owned())
            }
        };
        let labelled = label.map(|label| self.label(lane.handle, stack, &label, label_category));
        let described = wait.and_then(|wait| wait.ended_by);
        let described = described.map(|ended_by| ended_by_text(profile, ended_by));
        let waker = waker(profile, sample);
        let waker_name =
            waker.map(|waker| thread_field(profile, waker.comm, waker.thread, Ids::Thread));
        let waker_name = waker_name.or(described);
        let waker_stack = waker.filter(|waker| waker.stack != Stack::default());
        let waker_stack = waker_stack.map(|waker| brief(profile, waker.stack));
        let resource = wait.and_then(|wait| wait.resource);
        let resource = resource.map(|id| resource_text(profile, &profile.resources[id]));
        let wait = wait.map(|wait| wait_text(profile, wait));
        let mut text = |text: Option<&str>| self.file.text(text.unwrap_or(UNKNOWN));
        Known {
            stack,
            labelled: labelled.or(stack),
            category: label_category,
            wait: text(wait.as_deref()),
            resource: text(resource.as_deref()),
            waker: text(waker_name.as_deref()),
            waker_stack: text(waker_stack.as_deref()),
        }
    }

    /// Adds a stack of the profile; kernel frames are called by user frames.
    fn stack(&mut self, lane: &mut Lane, stack: Stack) -> Option<StackHandle> {
        let stacks = &self.profile.stacks;
        // Many stacks have the same callers, so only the frames above known ones are added.
        let mut new = Vec::new();
        let mut rest = stack.user;
        let mut callers = None;
        while let Some((below, leaf)) = stacks.node(rest) {
            callers = lane.user_stacks.get(&rest).copied();
            if callers.is_some() {
                break;
            }
            new.push((rest, leaf));
            rest = below;
        }
        for (user, leaf) in new.into_iter().rev() {
            let called = self.call(lane.handle, callers, leaf);
            lane.user_stacks.insert(user, called);
            callers = Some(called);
        }
        let kernel = stacks.root_first(stack.kernel).into_iter();
        kernel.fold(callers, |callers, leaf| {
            Some(self.call(lane.handle, callers, leaf))
        })
    }

    /// Adds the stack in which `callers` call a frame.
    fn call(
        &mut self,
        handle: ThreadHandle,
        callers: Option<StackHandle>,
        leaf: Id<Frame>,
    ) -> StackHandle {
        let frame = &self.profile.frames[leaf];
        let file = &mut self.file;
        let name = self.frames[leaf.index()];
        let name = name.unwrap_or_else(|| file.text(self.profile.name(frame)));
        self.frames[leaf.index()] = Some(name);
        let frame = file.frame(handle, name, frame.kind.into());
        file.stack(handle, callers, frame)
    }

    /// Adds a stack with a text on top.
    pub(super) fn label(
        &mut self,
        handle: ThreadHandle,
        callers: Option<StackHandle>,
        label: &str,
        category: Category,
    ) -> StackHandle {
        let name = self.file.text(label);
        let frame = self.file.frame(handle, name, category);
        self.file.stack(handle, callers, frame)
    }
}
