//! Orders samples by their printed names. The numbers of names cannot serve, because they depend on
//! the order of events.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::{
    EndedBy, Id, Label, Name, Profile, Resource, Sample, Stack, StackId, StackOrder, StackTree,
    ThreadId, Wait, Waker, Wakers, text,
};

/// A part of a wait. Waits compare part by part. Different parts compare in the order of these
/// variants, as the labels in captures of version 1 did.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part<'a> {
    Wakers(Vec<NamedWaker>),
    WakerDescribed(usize),
    Holder(usize, Option<ThreadId>),
    Idleness(&'a str),
    Resource(Resource<usize>),
    Kind(&'a str, &'a str),
}

/// A waker as a reader sees it: name, thread, and user and kernel stack, by their places.
type NamedWaker = (usize, Option<ThreadId>, [u32; 2]);

/// Order of the samples of one profile.
pub struct NameOrder<'a> {
    profile: &'a Profile,
    /// Places of all names in alphabetical order.
    names: Vec<usize>,
    stacks: Vec<u32>,
    /// Places of waits.
    waits: Vec<usize>,
}

impl<'a> NameOrder<'a> {
    /// Computes the order for the names, stacks and waits of a profile.
    #[must_use]
    pub fn new(profile: &'a Profile) -> NameOrder<'a> {
        let texts: Vec<_> = profile.names.iter().map(|name| text::frame(name)).collect();
        let mut sorted: Vec<&str> = texts.iter().map(|text| &**text).collect();
        sorted.sort_unstable();
        let place = |text: &Cow<'_, str>| sorted.partition_point(|other| **other < **text);
        let names: Vec<usize> = texts.iter().map(place).collect();
        // Frames with the same text are one frame.
        let mut tree = StackTree::default();
        let mut named = vec![StackId::EMPTY];
        for (callers, leaf) in profile.stacks.nodes() {
            let frame = &profile.frames[leaf];
            let frame = (names[frame.name.index()], frame.kind);
            named.push(tree.called(named[callers.index()], frame));
        }
        let order = StackOrder::new(&tree, |frame| frame);
        let mut order = NameOrder {
            profile,
            names,
            stacks: named.into_iter().map(|stack| order.place(stack)).collect(),
            waits: Vec::new(),
        };
        let waits: Vec<_> = profile.waits.iter().map(|wait| order.parts(wait)).collect();
        let mut sorted: Vec<&_> = waits.iter().collect();
        sorted.sort_unstable();
        let place = |parts: &Vec<Part<'_>>| sorted.partition_point(|other| **other < *parts);
        order.waits = waits.iter().map(place).collect();
        order
    }

    /// Compares by thread, user stack from the root, kernel stack, state, wakers, wait and
    /// labels.
    #[must_use]
    pub fn compare(&self, one: &Sample, other: &Sample) -> Ordering {
        let key = |sample: &Sample| {
            let place = self.place(sample.comm);
            (place, sample.thread, self.path(sample.stack), sample.state)
        };
        let by_wakers = || {
            let [one, other] = [one, other].map(|sample| self.wakers(sample.wakers));
            one.cmp(other)
        };
        let wait = |sample: &Sample| {
            let wait = sample.wait.map(|wait| self.waits[wait.index()]);
            (wait, sample.is_sampled)
        };
        let by_labels = || {
            let [one, other] = [one, other].map(|sample| self.labels(sample));
            one.cmp(other)
        };
        let by_key = key(one).cmp(&key(other));
        by_key
            .then_with(by_wakers)
            .then_with(|| wait(one).cmp(&wait(other)))
            .then_with(by_labels)
    }

    /// Returns the parts of a wait in the order in which they are compared.
    fn parts<'b>(&self, wait: &'b Wait) -> Vec<Part<'b>>
    where
        'a: 'b,
    {
        let mut parts = vec![Part::Kind(
            wait.kind.reason.name(),
            self.profile.detail_name(wait.kind.detail),
        )];
        parts.extend(wait.resource.map(|resource| {
            let resource = &self.profile.resources[resource];
            Part::Resource(resource.map(|name| self.place(*name)))
        }));
        parts.extend(
            (wait.holder).map(|holder| Part::Holder(self.place(holder.comm), holder.thread)),
        );
        parts.extend(wait.ended_by.map(|ended_by| match ended_by {
            EndedBy::Wakers(wakers) => Part::Wakers(self.wakers(Some(wakers)).collect()),
            EndedBy::Described(name) => Part::WakerDescribed(self.place(name)),
        }));
        parts.push(Part::Idleness(wait.idleness.name()));
        parts
    }

    fn labels(&self, sample: &Sample) -> impl Iterator<Item = (usize, usize)> {
        let labels = sample
            .labels
            .map_or(&[][..], |labels| &self.profile.labels[labels]);
        let places = |label: &Label| (self.place(label.key), self.place(label.value));
        labels.iter().map(places)
    }

    fn place(&self, name: Name) -> usize {
        self.names[name.index()]
    }

    fn path(&self, stack: Stack) -> [u32; 2] {
        [stack.user, stack.kernel].map(|part| self.stacks[part.index()])
    }

    fn wakers(&self, wakers: Option<Id<Wakers>>) -> impl Iterator<Item = NamedWaker> {
        let wakers = wakers.map_or(&[][..], |wakers| &self.profile.wakers[wakers]);
        wakers.iter().map(|waker: &Waker| {
            let place = self.place(waker.comm);
            (place, waker.thread, self.path(waker.stack))
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{Unit, folded};

    #[test]
    fn samples_are_ordered_as_they_read() {
        let ordered = [
            "a-1/1;b;c 1",
            "a-1/1;b;c_[r] 1",
            "a-1/1;b;c_[o] 1",
            "a-1/1;b;c_[o];--;a;x-1/9 1",
            "a-1/1;b;c_[o];--;b;x-1/9 1",
            "a-1/1;b;c;a 1",
            "a-1/1;c 1",
            "a-1/2;b 1",
            "b-1/1;a 1",
        ];
        let mut lines = ordered;
        lines.reverse();
        let text = lines.join("\n");
        let profile = folded::read(text.as_bytes(), Unit::Samples, true).unwrap();
        let mut samples: Vec<Sample> = profile.samples.keys().copied().collect();
        let order = NameOrder::new(&profile);
        samples.sort_by(|one, other| order.compare(one, other));
        let places = samples.iter().map(|sample| profile.samples.place(sample));
        let expected = (0..ordered.len()).rev().map(Some);
        assert!(places.eq(expected));
    }
}
