//! Request spans: the parts of the time that a thread spent on a request.
//!
//! These spans are spans as in OpenTelemetry. The spans of [`spans`](crate::spans) are different:
//! they are stays in a state, and only their lengths are counted.

use crate::{Id, Name, ThreadId};

/// A named part of a thread's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestSpan {
    /// Name of the thread's action.
    pub name: Name,
    /// The thread.
    pub thread: ThreadId,
    /// Start, in ns of CLOCK_MONOTONIC.
    pub start_ns: u64,
    /// End, in ns of CLOCK_MONOTONIC; not before the start.
    pub end_ns: u64,
    /// Parent span, possibly of another thread; `None` for a root.
    pub parent: Option<Id<RequestSpan>>,
}

/// Request spans. Each span comes after its parent, so no span is its own ancestor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestSpans(Vec<RequestSpan>);

impl RequestSpans {
    /// Adds a span and returns its number. Returns `None` and adds nothing if the parent does
    /// not come before the span.
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

    /// Adds the spans of another table. `name` translates their names.
    pub(crate) fn extend(&mut self, others: &RequestSpans, name: impl Fn(Name) -> Name) {
        let first = self.0.len();
        let others = others.iter().map(|span| RequestSpan {
            name: name(span.name),
            parent: span.parent.map(|parent| Id::new(first + parent.index())),
            ..*span
        });
        self.0.extend(others);
    }

    /// Keeps the wanted spans. A span whose parent is dropped becomes a root.
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

    /// Returns the ID of the span at a place, counted from 0, if there is one.
    #[must_use]
    pub fn id(&self, index: usize) -> Option<Id<RequestSpan>> {
        (index < self.len()).then(|| Id::new(index))
    }

    /// Returns the span with a number, if it exists.
    #[must_use]
    pub fn get(&self, id: Id<RequestSpan>) -> Option<&RequestSpan> {
        self.0.get(id.index())
    }

    /// Returns the spans in the order of their numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &RequestSpan> + Clone {
        self.0.iter()
    }

    /// Returns the number of spans.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no spans.
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
        // A span cannot be its own parent, nor have a later one as its parent.
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
