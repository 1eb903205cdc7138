//! Chooses one description for each address that several descriptions cover.

use std::ops::Range;

use crate::rule::Rule;

/// Addresses that one description covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    /// First address.
    pub(crate) start: u64,
    /// Address after the last one.
    pub(crate) end: u64,
    /// Location of the description of these addresses.
    pub(crate) from: From,
}

/// Location of a description.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum From {
    /// Offset of an entry of `.eh_frame`, in bytes.
    EhFrame(u32),
    /// Offset of an entry of `.debug_frame`, in bytes.
    DebugFrame(u32),
    /// Index of [`Ready`] rows.
    Ready(u32),
}

/// Ascending spans without overlaps.
#[derive(Debug, Default)]
pub(crate) struct Spans(Vec<Span>);

impl Spans {
    /// Returns the lowest address; 0 if there are no spans.
    pub(crate) fn start(&self) -> u64 {
        self.0.first().map_or(0, |span| span.start)
    }

    /// Returns all spans in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Span> {
        self.0.iter()
    }

    /// Adds the spans of `new` that are inside `within`. Of each new span, adds the first part that
    /// no span covers yet. A new span ends where the next new span begins.
    ///
    /// Overlapping descriptions are therefore evaluated only once, and their total size bounds the
    /// work.
    pub(crate) fn fill(&mut self, mut new: Vec<Span>, within: &[Range<u64>]) {
        new.retain_mut(|span| clip(span, within));
        new.sort_unstable();
        new.dedup_by_key(|span| span.start);
        for index in 1..new.len() {
            new[index - 1].end = new[index - 1].end.min(new[index].start);
        }
        if self.0.is_empty() {
            self.0 = new;
            return;
        }
        let mut old = std::mem::take(&mut self.0).into_iter().peekable();
        let mut merged: Vec<Span> = Vec::with_capacity(old.len() + new.len());
        for mut span in new {
            // Skips the old spans that cover the start of the new span.
            while let Some(covering) = old.next_if(|old| old.start <= span.start) {
                merged.push(covering);
            }
            span.start = span.start.max(merged.last().map_or(0, |last| last.end));
            while let Some(covering) = old.next_if(|old| old.start <= span.start) {
                span.start = covering.end;
                merged.push(covering);
            }
            span.end = span.end.min(old.peek().map_or(u64::MAX, |next| next.start));
            if span.start < span.end {
                merged.push(span);
            }
        }
        merged.extend(old);
        self.0 = merged;
    }

    /// Returns the parts of `range` that no span covers.
    pub(crate) fn gaps(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let first = self.0.partition_point(|span| span.end <= range.start);
        let mut at = range.start;
        self.0[first..]
            .iter()
            .take_while(move |span| span.start < range.end)
            .map(|span| span.start..span.end)
            .chain(std::iter::once(range.end..range.end))
            .filter_map(move |covered| {
                let gap = at..covered.start;
                at = covered.end;
                (gap.start < gap.end).then_some(gap)
            })
    }
}

/// Cuts `span` to the first range of `within` that it overlaps. Returns `false` if there is none.
fn clip(span: &mut Span, within: &[Range<u64>]) -> bool {
    let overlaps = |range: &&Range<u64>| span.start.max(range.start) < span.end.min(range.end);
    let Some(range) = within.iter().find(overlaps) else {
        return false;
    };
    span.start = span.start.max(range.start);
    span.end = span.end.min(range.end);
    true
}

/// Rows that do not come from call frame information.
pub(crate) struct Ready {
    /// Virtual addresses that the rows describe.
    pub(crate) range: Range<u64>,
    /// First address and rule of each row, ascending.
    pub(crate) rows: Vec<(u64, Rule)>,
}

impl Ready {
    /// Returns the span of the [`Ready`] rows with this index.
    pub(crate) fn span((ready, index): (&Ready, u32)) -> Span {
        Span {
            start: ready.range.start,
            end: ready.range.end,
            from: From::Ready(index),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn span(start: u64, end: u64, index: u32) -> Span {
        Span {
            start,
            end,
            from: From::EhFrame(index),
        }
    }

    fn spans() -> impl Strategy<Value = Vec<(u64, u64)>> {
        prop::collection::vec((0..200_u64, 0..40_u64), 0..12)
    }

    proptest! {
        #[test]
        fn what_was_first_stays_and_nothing_overlaps(first in spans(), second in spans()) {
            let code = [20..90, 120..180];
            let number = |from: &[(u64, u64)], by: u32| -> Vec<Span> {
                let spans = from.iter().zip(by..);
                spans.map(|(&(start, size), index)| span(start, start + size, index)).collect()
            };
            let (first, second) = (number(&first, 0), number(&second, 100));
            let mut alone = Spans::default();
            alone.fill(first.clone(), &code);
            let mut spans = Spans::default();
            spans.fill(first.clone(), &code);
            spans.fill(second.clone(), &code);

            for pair in spans.0.windows(2) {
                prop_assert!(pair[0].end <= pair[1].start);
            }
            for span in &spans.0 {
                prop_assert!(span.start < span.end);
                prop_assert!(code.iter().any(|code| code.start <= span.start && span.end <= code.end));
                let original = first.iter().chain(&second).find(|one| one.from == span.from);
                prop_assert!(original.is_some_and(|one| one.start <= span.start && span.end <= one.end));
            }
            for span in &alone.0 {
                prop_assert!(spans.0.contains(span));
            }
            // The gaps are the addresses that no span covers.
            let mut left: Vec<u64> = (0..250).collect();
            left.retain(|&at| !spans.0.iter().any(|span| (span.start..span.end).contains(&at)));
            let gaps: Vec<u64> = spans.gaps(0..250).flatten().collect();
            prop_assert_eq!(gaps, left);
        }
    }
}
