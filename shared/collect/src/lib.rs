//! From what programs report to what they counted, and its names: stacks, wakers, sums,
//! accounts of threads, lengths of spans.
//!
//! A [`ClockSession`] or a [`SamplingSession`] attaches an object that is loaded, keeps up
//! with it until the window is over, and returns what was [`Collected`]. That becomes a
//! [`profile::Profile`]. A [`SpanCollector`] does the like for spans, an interval at a
//! time.

mod account;
mod collector;
mod counts;
mod diagnostics;
mod draft;
mod naming;
mod session;
mod spans;
mod stack_choice;
mod stacks;
mod thread_names;
mod wakers;
mod window_variables;

pub use collector::{Collected, Collector};
pub use diagnostics::{Diagnostics, LeftOut};
pub use draft::Detail;
pub use naming::{Named, WakersShown};
pub use session::{ClockSession, OffCpuFilter, SamplingSession, Session, ThreadKind};
pub use spans::{NEVER, Question, SpanCollector};
pub use stack_choice::StackChoice;
pub use symbolize::Sources;
pub use unwind_tables::{CallGraph, Languages, Space, Unwinder, Walking};
