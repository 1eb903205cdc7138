//! Collects programs' reports, and assembles profiles from them: named stacks, wakers, sums,
//! accounts of threads, and lengths of spans.
//!
//! A [`ClockSession`] or a [`SamplingSession`] attaches a loaded object, takes its messages until
//! the window closes, and returns [`Collected`]. [`Collected::name`] makes a [`profile::Profile`]
//! of it. A [`SpanCollector`] collects spans, for one period of cpudist's output at a time.

mod assemble;
mod record;

pub use assemble::{Diagnostics, Fired, Named, Verdicts, WakersShown};
pub use record::{
    ClockSession, Collected, Collector, Delay, Detail, LeftOut, NEVER, OffCpuFilter, Question,
    Recorder, RowSink, SamplingSession, Session, SpanCollector, StackChoice, ThreadKind, Trigger,
};
pub use symbolize::{DebugFiles, Sources};
pub use unwind_tables::{CallGraph, Languages, Space, Unwinder, Walking};
