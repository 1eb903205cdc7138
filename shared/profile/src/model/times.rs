//! Rows of time, from which timelines are drawn.

mod agreement;
mod intervals;
mod request_spans;
mod thread_events;
mod timed_samples;

pub use agreement::Disagreement;
pub use intervals::{Interval, Shares};
pub use request_spans::{RequestSpan, RequestSpans};
pub use thread_events::{ThreadChange, ThreadEvent};
pub use timed_samples::TimedSample;

use crate::{Id, Sample, ThreadId};

/// Rows of time. A profile that has only sums has no rows of time. Instants are in ns of
/// CLOCK_MONOTONIC, like the start of the profile's [`Window`](crate::Window). Rows are in any
/// order, except that a request span comes after its parent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Intervals of threads.
    pub intervals: Vec<Interval>,
    /// Single samples with their times.
    pub timed_samples: Vec<TimedSample>,
    /// Events in the lives of threads.
    pub thread_events: Vec<ThreadEvent>,
    /// Spans in which threads served requests.
    pub request_spans: RequestSpans,
}

impl Times {
    /// Returns whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Times {
            intervals,
            timed_samples,
            thread_events,
            request_spans,
        } = self;
        intervals.is_empty()
            && timed_samples.is_empty()
            && thread_events.is_empty()
            && request_spans.is_empty()
    }

    /// Returns the thread of each row, with repetitions.
    pub fn threads(&self) -> impl Iterator<Item = ThreadId> {
        let intervals = self.intervals.iter().map(|interval| interval.thread);
        let timed_samples = self.timed_samples.iter().map(|timed| timed.thread);
        let thread_events = self.thread_events.iter().map(|event| event.thread);
        let request_spans = self.request_spans.iter().map(|span| span.thread);
        let threads = intervals.chain(timed_samples).chain(thread_events);
        threads.chain(request_spans)
    }

    /// Replaces the numbers of samples. A row is dropped if its sample has no new number.
    pub(crate) fn renumber_samples(
        &mut self,
        mut new: impl FnMut(Id<Sample>) -> Option<Id<Sample>>,
    ) {
        self.intervals.retain_mut(|interval| {
            let old = interval.sample;
            interval.sample = old.and_then(&mut new);
            interval.sample.is_some() || old.is_none()
        });
        self.timed_samples.retain_mut(|timed| {
            let sample = new(timed.sample);
            timed.sample = sample.unwrap_or(timed.sample);
            sample.is_some()
        });
    }
}
