//! Request spans: what a thread did for a request, from when until when.
//!
//! They are the spans of OpenTelemetry. The spans of [`spans`](crate::spans) are others:
//! stays in a state, of which only the lengths are counted.

use crate::{Id, Name, ThreadId};

/// A named piece of a thread's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestSpan {
    /// The name of what the thread did.
    pub name: Name,
    /// The thread.
    pub thread: ThreadId,
    /// When the span began, nanoseconds of CLOCK_MONOTONIC.
    pub start_ns: u64,
    /// When it ended, nanoseconds of CLOCK_MONOTONIC; not before it began.
    pub end_ns: u64,
    /// The span that it is a part of, which another thread may have; `None` of a root.
    pub parent: Option<Id<RequestSpan>>,
}

/// Request spans. Each comes after its parent, so that none is its own ancestor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestSpans(Vec<RequestSpan>);

impl RequestSpans {
    /// Adds a span and returns its number; `None`, and nothing is added, if its parent does
    /// not come before it.
    pub fn add(&mut self, span: RequestSpan) -> Option<Id<RequestSpan>> {
        if span
            .parent
            .is_some_and(|parent| parent.index() >= self.0.len())
        {
            return None;
        }
        self.0.push(span);
        Some(Id::new(self.0.len() - 1))
    }

    /// Adds the spans of other tables, whose names are `name` here.
    pub(crate) fn extend(&mut self, others: &RequestSpans, name: impl Fn(Name) -> Name) {
        let first = self.0.len();
        let others = others.iter().map(|span| RequestSpan {
            name: name(span.name),
            parent: span.parent.map(|parent| Id::new(first + parent.index())),
            ..*span
        });
        self.0.extend(others);
    }

    /// Leaves the spans that are wanted. A span whose parent goes becomes a root.
    pub(crate) fn retain(&mut self, mut is_wanted: impl FnMut(&RequestSpan) -> bool) {
        let mut numbers: Vec<Option<Id<RequestSpan>>> = Vec::with_capacity(self.0.len());
        let mut kept = 0;
        self.0.retain_mut(|span| {
            let is_kept = is_wanted(span);
            numbers.push(is_kept.then(|| Id::new(kept)));
            kept += usize::from(is_kept);
            span.parent = span.parent.and_then(|parent| numbers[parent.index()]);
            is_kept
        });
    }

    /// The span of a number, if it is there.
    #[must_use]
    pub fn get(&self, id: Id<RequestSpan>) -> Option<&RequestSpan> {
        self.0.get(id.index())
    }

    /// The spans, in the order of their numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &RequestSpan> + Clone {
        self.0.iter()
    }

    /// How many spans there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Table;

    #[test]
    fn a_parent_comes_before_its_children_and_children_of_what_goes_are_roots() {
        let name = Table::default().text("f");
        let span = |tid, parent| RequestSpan {
            name,
            thread: ThreadId { pid: 1, tid },
            start_ns: 2,
            end_ns: 3,
            parent,
        };
        let mut spans = RequestSpans::default();
        // Its own parent, and that of one that comes later.
        assert_eq!(spans.add(span(1, Some(Id::new(0)))), None);
        let root = spans.add(span(1, None));
        assert_eq!(spans.add(span(2, Some(Id::new(1)))), None);
        let child = spans.add(span(2, root));
        let grandchild = spans.add(span(1, child));
        spans.add(span(1, root)).unwrap();
        spans.add(span(3, grandchild)).unwrap();
        let parents = |spans: &RequestSpans| -> Vec<(u32, Option<usize>)> {
            let spans = spans.iter();
            spans
                .map(|span| (span.thread.tid, span.parent.map(Id::index)))
                .collect()
        };
        let mut both = spans.clone();
        both.extend(&spans, |name| name);
        let second = [
            (1, None),
            (2, Some(5)),
            (1, Some(6)),
            (1, Some(5)),
            (3, Some(7)),
        ];
        assert_eq!(parents(&both)[5..], second);
        spans.retain(|span| span.thread.tid != 2);
        let left = [(1, None), (1, None), (1, Some(0)), (3, Some(1))];
        assert_eq!(parents(&spans), left);
    }
}
