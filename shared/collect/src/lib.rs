//! Collection of programs' reports, and the assembly of named profiles from them: stacks, wakers,
//! sums, accounts of threads, lengths of spans.
//!
//! A [`ClockSession`] or a [`SamplingSession`] attaches a loaded object, takes its messages until
//! the window closes, and returns [`Collected`]. The collected data become a
//! [`profile::Profile`]. A [`SpanCollector`] does the same for spans, one interval at a time.

mod assemble;
mod record;

pub use assemble::{Diagnostics, Named, WakersShown};
pub use record::{
    ClockSession, Collected, Collector, Detail, LeftOut, NEVER, OffCpuFilter, Question,
    SamplingSession, Session, SpanCollector, StackChoice, ThreadKind,
};
pub use symbolize::Sources;
pub use unwind_tables::{CallGraph, Languages, Space, Unwinder, Walking};
