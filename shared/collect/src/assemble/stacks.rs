//! Conversion of stacks of locations to stacks in a profile.

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
    /// Every frame, as far as the unwind could reach.
    Whole,
    /// The frames next to the leaf, until the unwind strayed or reached the maximum depth of a
    /// capture.
    Truncated,
    /// The user or the kernel part is missing.
    Missing,
}

/// Stack in a profile.
#[derive(Clone)]
pub(crate) struct NamedStack {
    pub(crate) stack: Stack,
    pub(crate) quality: Quality,
    /// End of the user stack's unwind; `None` if that is not known.
    pub(crate) outcome: Option<Outcome>,
    /// File of the user frame that is nearest to the root.
    pub(crate) last_module: Option<Arc<str>>,
}

/// User stack or kernel stack in a profile.
struct NamedPart {
    stack: StackId,
    quality: Quality,
    outcome: Option<Outcome>,
    last_module: Option<Arc<str>>,
}

impl Stacks {
    /// Resolves the names of these stacks' frames, all at once.
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

    /// Looks up the functions that the leaves of these kernel stacks call, in which threads
    /// slept. The kernel leaves functions of the scheduler's section out of stacks, locks
    /// included.
    pub(crate) fn look_up_sleeps(&mut self, kernel: impl Iterator<Item = Captured>) {
        let leaves: BTreeMap<u64, Id<Location>> = kernel
            .filter_map(|captured| {
                let leaf = self.leaf(captured)?;
                match self.locations[leaf] {
                    // The address is the call's, one byte before the return address.
                    Location::Kernel { address } => Some((address + 1, leaf)),
                    _ => None,
                }
            })
            .collect();
        let addresses: Vec<u64> = leaves.keys().copied().collect();
        // Without the calls, some waits have no reason.
        let called = loader::kernel_calls(&addresses).unwrap_or_default();
        let called = leaves.into_values().zip(called);
        self.sleeps = called
            .filter_map(|(leaf, called)| Some((leaf, Location::Kernel { address: called? })))
            .collect();
    }

    /// Returns the function that a kernel stack's leaf called to sleep, if that is known.
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

    /// Returns a user stack with its kernel stack in a profile, once both are resolved.
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

    /// Returns the name of the file that a location is in.
    fn file(&self, location: Location) -> Option<Arc<str>> {
        let module = self.symbolizer.frame(location).module?;
        (module.kind != ModuleKind::Jit).then(|| Arc::clone(&module.name))
    }

    /// Returns the maximum number of frames that the kernel returns of a stack that it unwound
    /// itself.
    fn depth_limit(&self, stack: StackId) -> usize {
        let leaf = self.tree.node(stack).map(|(_, leaf)| self.locations[leaf]);
        match leaf {
            Some(Location::Kernel { .. }) => self.depths.kernel,
            _ => self.depths.user,
        }
    }

    /// Returns the frame that is nearest to the root.
    fn root(&self, stack: StackId) -> Option<Location> {
        let root = self.tree.leaf_first(stack).last();
        root.map(|root| self.locations[root])
    }

    /// Returns the profile's stack with the frames of `stack`.
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

    /// Returns the profile's stack for a stack that the profile shows changed. The tracer's own
    /// frames are cut out of a kernel stack. A mark at the root shows that a stack is too deep.
    fn cut_stack_in(&self, draft: &mut Draft, stack: StackId, is_too_deep: bool) -> StackId {
        // With the mark, other stacks do not share these frames as their callers.
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
