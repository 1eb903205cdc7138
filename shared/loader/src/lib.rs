//! From a command line to counted stacks: privileges and kernel features,
//! targets, attaching, draining, and what was lost.
//!
//! A tool opens its [`OpenObject`], lets [`Kernel::configure`], [`Targets::configure`]
//! and what else it asks for set constants and make room, and loads it. A
//! [`ClockSession`] or a [`SamplingSession`] attaches the [`LoadedObject`] and keeps up
//! with it until the window is over. What is left then becomes a [`profile::Profile`].
//! cpudist has a [`SpanCollector`] instead.

mod accounts;
mod clock_session;
mod collector;
mod cpus;
mod double_buffer;
mod draft;
mod error;
mod events;
mod iterators;
mod kernel;
mod living;
mod maps;
mod naming;
mod object;
mod once;
mod pre_existing;
mod preflight;
mod processes;
mod room;
mod sampling;
mod sampling_session;
mod session;
mod spans;
mod stack_choice;
mod stacks;
mod sums;
mod targets;
mod time;
mod unwinding;
mod wakers;
mod walks;
mod window_variables;

pub use accounts::{OffCpuFilter, ThreadKind};
pub use clock_session::{Charge, ClockSession};
pub use collector::{Collected, Collector};
pub use cpus::online_cpus;
pub use draft::Detail;
pub use error::{Error, Result};
pub use events::Event;
pub use kernel::Kernel;
pub use naming::{Named, WakersShown};
pub use object::{Constant, LoadedObject, OpenObject, Variable};
pub use preflight::check_privileges;
pub use room::make_room_for_threads;
pub use sampling::Samplers;
pub use sampling_session::SamplingSession;
pub use session::Session;
pub use spans::{NEVER, Question, SpanCollector};
pub use stack_choice::StackChoice;
pub use targets::{TargetWatch, Targets};
pub use time::{monotonic_ns, sleep_until};
pub use unwinding::{CallGraph, Space, Unwinder};
