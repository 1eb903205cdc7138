//! From what programs report to what they counted, and its names: stacks, wakers, sums,
//! accounts of threads, lengths of spans.
//!
//! A [`ClockSession`] or a [`SamplingSession`] attaches an object that is loaded, keeps up
//! with it until the window is over, and returns what was [`Collected`]. That becomes a
//! [`profile::Profile`]. A [`SpanCollector`] does the like for spans, an interval at a
//! time.

mod assemble;
mod record;

pub use assemble::{Diagnostics, Named, WakersShown};
pub use record::{
    ClockSession, Collected, Collector, Detail, LeftOut, NEVER, OffCpuFilter, Question,
    SamplingSession, Session, SpanCollector, StackChoice, ThreadKind,
};
pub use symbolize::Sources;
pub use unwind_tables::{CallGraph, Languages, Space, Unwinder, Walking};
