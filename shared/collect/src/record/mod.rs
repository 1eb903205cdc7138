//! Reports of programs: events from the ring buffer, counts, accounts of threads, and lengths of
//! spans.
//!
//! A session follows a program from its attachment to its end.

mod account;
pub(crate) mod collector;
mod counts;
mod cut;
mod left_out;
mod runtime_names;
mod session;
mod spans;
mod stack_choice;
mod stacks;
mod stores;
mod thread_names;
mod timeline;
mod wakers;
mod window_variables;

pub use collector::{Collected, Collector};
pub use left_out::LeftOut;
pub use session::{ClockSession, OffCpuFilter, SamplingSession, Session, ThreadKind};
pub use spans::{NEVER, Question, SpanCollector};
pub use stack_choice::{Detail, StackChoice};

pub(crate) use account::Account;
pub(crate) use counts::sums;
pub(crate) use runtime_names::{KernelName, RuntimeNames};
pub(crate) use stacks::{Captured, Outcome, Stacks, WalkEnd, Walked};
pub(crate) use stores::Stores;
pub use timeline::{Delay, Recorder, RowSink, Trigger};
pub(crate) use timeline::{Suspect, Timeline};
pub(crate) use wakers::{Hop, Wakers};
