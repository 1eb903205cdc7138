//! The order of samples by what is read of them: names as they print, and not numbers,
//! which are as chance has it.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;

use crate::{
    FrameKind, Id, Label, Labels, Name, Profile, Sample, Stack, ThreadId, Waker, Wakers, text,
};

/// The place of a name among all, and what kind of frame has it.
type NamedFrame = (usize, FrameKind);
/// What is read of a waker.
type NamedWaker<'a> = (usize, Option<ThreadId>, &'a [NamedFrame]);

/// Compares the samples of one profile.
pub struct NameOrder<'a> {
    profile: &'a Profile,
    places: Vec<usize>,
    paths: HashMap<Stack, Vec<NamedFrame>>,
}

impl<'a> NameOrder<'a> {
    /// An order of samples with these stacks, and with any wakers.
    pub fn new(profile: &'a Profile, stacks: impl IntoIterator<Item = Stack>) -> NameOrder<'a> {
        let texts: Vec<_> = profile.names.iter().map(|name| text::frame(name)).collect();
        let mut sorted: Vec<&str> = texts.iter().map(|text| &**text).collect();
        sorted.sort_unstable();
        let place = |text: &Cow<'_, str>| sorted.partition_point(|other| **other < **text);
        let places: Vec<usize> = texts.iter().map(place).collect();
        let wakers = profile.wakers.iter().flat_map(|wakers| wakers.iter());
        let all = stacks.into_iter().chain(wakers.map(|waker| waker.stack));
        let mut paths = HashMap::new();
        for stack in all {
            paths.entry(stack).or_insert_with(|| {
                let user = profile.frames_of(stack.user);
                let frames = user.chain(profile.frames_of(stack.kernel));
                let named = frames.map(|frame| (places[frame.name.index()], frame.kind));
                named.collect()
            });
        }
        NameOrder {
            profile,
            places,
            paths,
        }
    }

    /// By thread, stack from its root on, state, wakers and labels.
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
        let by_labels = || {
            let [one, other] = [one, other].map(|sample| self.labels(sample.labels));
            one.cmp(other)
        };
        let by_key = key(one).cmp(&key(other));
        by_key.then_with(by_wakers).then_with(by_labels)
    }

    fn labels(&self, labels: Option<Id<Labels>>) -> impl Iterator<Item = (usize, usize)> {
        let labels = labels.map_or(&[][..], |labels| &self.profile.labels[labels]);
        let places = |label: &Label| (self.place(label.key), self.place(label.value));
        labels.iter().map(places)
    }

    fn place(&self, name: Name) -> usize {
        self.places[name.index()]
    }

    fn path(&self, stack: Stack) -> &[NamedFrame] {
        self.paths.get(&stack).map_or(&[], Vec::as_slice)
    }

    fn wakers(&self, wakers: Option<Id<Wakers>>) -> impl Iterator<Item = NamedWaker<'_>> {
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
        let stacks = samples.iter().map(|sample| sample.stack);
        let order = NameOrder::new(&profile, stacks);
        samples.sort_by(|one, other| order.compare(one, other));
        let places = samples.iter().map(|sample| profile.samples.place(sample));
        let expected = (0..ordered.len()).rev().map(Some);
        assert!(places.eq(expected));
    }
}
