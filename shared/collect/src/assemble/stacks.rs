//! Converts stacks of locations to stacks of a profile.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;

use profile::{Id, ModuleKind, Stack, StackId, marker};
use symbolize::Location;

use super::draft::Draft;
use crate::record::{Captured, Outcome, Stacks, WalkEnd, Walked};

/// Completeness of a named stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Quality {
    /// The stack has every frame that the unwind could reach.
    Whole,
    /// The stack has only the frames next to the leaf. The unwind strayed, or the stack is deeper
    /// than a capture can be.
    Truncated,
    /// The user part or the kernel part is missing.
    Missing,
}

/// Stack of a profile, with its quality.
#[derive(Clone)]
pub(crate) struct NamedStack {
    pub(crate) stack: Stack,
    pub(crate) quality: Quality,
    /// End of the user stack's unwind, if it is known.
    pub(crate) outcome: Option<Outcome>,
    /// File of the user frame nearest to the root.
    pub(crate) last_module: Option<Arc<str>>,
}

/// User part or kernel part of a stack of a profile.
struct NamedPart {
    stack: StackId,
    quality: Quality,
    outcome: Option<Outcome>,
    last_module: Option<Arc<str>>,
}

impl Stacks {
    /// Resolves the names of all frames of these stacks in one batch.
    pub(crate) fn resolve(&mut self, captured: impl Iterator<Item = Captured>) {
        let sleeps: Vec<Location> = self.sleeps.values().copied().collect();
        self.symbolizer.resolve(sleeps);
        let mut seen = vec![false; self.tree.len()];
        let mut wanted = vec![false; self.locations.len()];
        for captured in captured {
            let Captured::Stack(Walked { stack, .. }) = captured else {
                continue;
            };
            let mut rest = stack;
            while let Some((callers, leaf)) = self.tree.node(rest)
                && !seen[rest.index()]
            {
                seen[rest.index()] = true;
                wanted[leaf.index()] = true;
                rest = callers;
            }
        }
        let locations = self.locations.iter().zip(wanted);
        let wanted = locations.filter_map(|(location, is_wanted)| is_wanted.then_some(*location));
        self.symbolizer.resolve(wanted);
    }

    /// Finds the functions that the leaves of these kernel stacks call to sleep. The kernel omits
    /// functions in the scheduler's section from stacks, including the functions of locks.
    pub(crate) fn look_up_sleeps(&mut self, kernel: impl Iterator<Item = Captured>) {
        let leaves: BTreeMap<u64, Id<Location>> = kernel
            .filter_map(|captured| {
                let leaf = self.leaf(captured)?;
                match self.locations[leaf] {
                    // The address is inside the call, one byte before the return address.
                    Location::Kernel { address } => Some((address + 1, leaf)),
                    _ => None,
                }
            })
            .collect();
        let addresses: Vec<u64> = leaves.keys().copied().collect();
        // Without the called functions, some waits have no reason.
        let called = loader::kernel_calls(&addresses).unwrap_or_default();
        let called = leaves.into_values().zip(called);
        self.sleeps = called
            .filter_map(|(leaf, called)| Some((leaf, Location::Kernel { address: called? })))
            .collect();
    }

    /// Returns the function that the leaf of a kernel stack called to sleep, if it is known.
    pub(crate) fn sleep(&self, kernel: Captured) -> Option<symbolize::Frame> {
        let called = self.sleeps.get(&self.leaf(kernel)?)?;
        Some(self.symbolizer.frame(*called))
    }

    fn leaf(&self, captured: Captured) -> Option<Id<Location>> {
        match captured {
            Captured::Stack(walked) => Some(self.tree.node(walked.stack)?.1),
            Captured::Nothing | Captured::Missed => None,
        }
    }

    /// Returns the profile's stack for a user stack and its kernel stack. Both must be resolved.
    pub(crate) fn named(&self, user: Captured, kernel: Captured, draft: &mut Draft) -> NamedStack {
        let user = self.part(user, marker::MISSED_USER, draft);
        let kernel = self.part(kernel, marker::MISSED_KERNEL, draft);
        NamedStack {
            stack: Stack {
                user: user.stack,
                kernel: kernel.stack,
            },
            quality: user.quality.max(kernel.quality),
            outcome: user.outcome,
            last_module: user.last_module,
        }
    }

    fn part(&self, captured: Captured, missed: &str, draft: &mut Draft) -> NamedPart {
        let Walked { stack, outcome } = match captured {
            Captured::Stack(walked) => walked,
            Captured::Nothing => return NamedPart::without_frames(Quality::Whole),
            Captured::Missed => {
                return NamedPart {
                    stack: draft.profile.marker(missed).user,
                    ..NamedPart::without_frames(Quality::Missing)
                };
            }
        };
        let root = self.root(stack);
        let is_too_deep = match outcome {
            Some(outcome) => outcome.end == WalkEnd::TooDeep,
            None => self.tree.leaf_first(stack).count() == self.depth_limit(stack),
        };
        let is_whole = match outcome {
            Some(outcome) => outcome.end == WalkEnd::Root,
            None => !is_too_deep && root != Some(Location::Unknown),
        };
        NamedPart {
            stack: self.stack_in(draft, stack, is_too_deep),
            quality: if is_whole {
                Quality::Whole
            } else {
                Quality::Truncated
            },
            outcome,
            last_module: if is_whole {
                None
            } else {
                root.and_then(|root| self.file(root))
            },
        }
    }

    /// Returns the name of the file that contains a location; `None` for code of a JIT compiler.
    fn file(&self, location: Location) -> Option<Arc<str>> {
        let module = self.symbolizer.frame(location).module?;
        (module.kind != ModuleKind::Jit).then(|| Arc::clone(&module.name))
    }

    /// Returns the maximum number of frames in a stack that the kernel unwound itself.
    fn depth_limit(&self, stack: StackId) -> usize {
        let leaf = self.tree.node(stack).map(|(_, leaf)| self.locations[leaf]);
        match leaf {
            Some(Location::Kernel { .. }) => self.depths.kernel,
            _ => self.depths.user,
        }
    }

    /// Returns the location of the frame nearest to the root.
    fn root(&self, stack: StackId) -> Option<Location> {
        let root = self.tree.leaf_first(stack).last();
        root.map(|root| self.locations[root])
    }

    /// Returns the stack of the profile that corresponds to `stack`.
    fn stack_in(&self, draft: &mut Draft, stack: StackId, is_too_deep: bool) -> StackId {
        let leaf = self.tree.node(stack).map(|(_, leaf)| self.locations[leaf]);
        if is_too_deep || matches!(leaf, Some(Location::Kernel { .. })) {
            return self.cut_stack_in(draft, stack, is_too_deep);
        }
        let mut stacks = mem::take(&mut draft.stacks);
        let named = stacks.stack(&self.tree, stack, |callers, leaf| {
            let name = || self.symbolizer.frame(self.locations[leaf]);
            draft.called(callers, leaf.index(), name)
        });
        draft.stacks = stacks;
        named
    }

    /// Returns the stack of the profile for a stack that must change. Removes the tracer's own
    /// frames from a kernel stack. Puts a marker at the root of a stack that is too deep.
    fn cut_stack_in(&self, draft: &mut Draft, stack: StackId, is_too_deep: bool) -> StackId {
        // A stack with a marker shares no callers with other stacks, so it is not looked up.
        if !is_too_deep && let Some(named) = draft.stacks.get(stack) {
            return named;
        }
        let leaves = self.tree.leaf_first(stack);
        let locations: Vec<Location> = leaves.map(|leaf| self.locations[leaf]).collect();
        let mark = is_too_deep.then(|| draft.marker(marker::TRUNCATED));
        let mut named = draft.profile.stacks.add(mark);
        for frame in self.symbolizer.frames(&locations) {
            named = draft.called_frame(named, &frame);
        }
        if !is_too_deep {
            draft.stacks.put(stack, named);
        }
        named
    }
}

impl NamedPart {
    fn without_frames(quality: Quality) -> NamedPart {
        NamedPart {
            stack: StackId::EMPTY,
            quality,
            outcome: None,
            last_module: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Detail;

    #[test]
    fn what_was_missed_is_marked_and_what_was_not_there_is_not() {
        let stacks = Stacks::new();
        let mut draft = Draft::new(profile::Unit::Samples, Detail::Names);
        let mut named = |user, kernel| stacks.named(user, kernel, &mut draft);
        let nothing = named(Captured::Nothing, Captured::Nothing);
        assert!(nothing.stack.user.is_empty() && nothing.stack.kernel.is_empty());
        assert_eq!(nothing.quality, Quality::Whole);
        let missed = named(Captured::Nothing, Captured::Missed);
        assert!(missed.stack.user.is_empty() && !missed.stack.kernel.is_empty());
        assert_eq!(missed.quality, Quality::Missing);
    }

    #[test]
    fn only_a_stack_that_is_too_deep_has_a_mark() {
        let mut stacks = Stacks::new();
        let [root, caller, leaf] = [8, 16, 24].map(|offset| Location::Vdso { offset });
        let ended = |end| {
            let by_frame_pointer = false;
            Some(Outcome {
                end,
                by_frame_pointer,
            })
        };
        stacks.keep(10, vec![caller, root], ended(WalkEnd::TooDeep), None);
        stacks.keep(11, vec![leaf, caller, root], ended(WalkEnd::Root), None);
        stacks.keep(12, vec![caller, root], ended(WalkEnd::Root), None);
        let mut draft = Draft::new(profile::Unit::Samples, Detail::Names);
        let mut depth = |id| {
            let captured = stacks.captured(id).unwrap_or(Captured::Missed);
            let named = stacks.named(captured, Captured::Nothing, &mut draft);
            let mut frames = draft.profile.frames_of(named.stack.user);
            let first = frames
                .next()
                .map(|frame| draft.profile.name(frame).to_owned());
            (
                first.as_deref() == Some(marker::TRUNCATED),
                frames.count() + 1,
            )
        };
        let expected = [(true, 3), (false, 3), (false, 2), (true, 3)];
        assert_eq!([10, 11, 12, 10].map(&mut depth), expected);
    }
}
