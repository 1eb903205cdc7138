//! From a command line to counted stacks: privileges and kernel features,
//! targets, attaching, draining, and what was lost.
//!
//! A tool opens its skeleton, lets [`Kernel::configure`] and
//! [`Targets::configure`] set what all programs share, loads and attaches it,
//! and hands it to a [`Collector`], which keeps up with it until the window is
//! over. What is left then becomes a [`profile::Profile`]. cpudist has a
//! [`SpanCollector`] instead.

mod accounts;
mod attach;
mod clock_session;
mod collector;
mod cpus;
mod draft;
mod error;
mod events;
mod iterators;
mod kernel;
mod living;
mod maps;
mod naming;
mod once;
mod preflight;
mod sampling;
mod seeds;
mod spans;
mod stack_choice;
mod stacks;
mod sums;
mod targets;
mod turns;
mod unwinding;
mod wakers;
mod walks;

pub use accounts::{OffCpuFilter, ThreadKind};
pub use attach::{attach, size_thread_map};
pub use clock_session::{ClockProgram, ClockSession};
pub use collector::{Collected, Collector, CountMaps};
pub use error::{Error, Result};
pub use events::Event;
pub use kernel::Kernel;
pub use naming::{Named, WakersShown};
pub use preflight::check_privileges;
pub use sampling::{Rate, Samplers};
pub use spans::{Question, SpanCollector, SpanMaps, SpanPrograms};
pub use stack_choice::StackChoice;
pub use targets::{TargetWatch, Targets};
pub use unwinding::{CallGraph, Space, UnwindMaps, Unwinder, size_unwind_maps};
