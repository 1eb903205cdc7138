//! Types of a profile's rows.

mod bursts;
mod code;
mod language;
mod losses;
mod meta;
mod processes;
mod retain;
mod sample;
mod threads;
mod times;
mod waits;
mod walk_ends;

pub use bursts::Bursts;
pub use code::{Frame, FrameKind, Function, Module, ModuleKind};
pub use language::LanguageName;
pub use losses::Losses;
pub use meta::{Ending, Lengths, Meta, Rate, Sampling, Unit, Window};
pub use processes::Process;
pub use retain::LastNames;
pub use sample::{Label, Labels, Sample, Stack, State, Waker, Wakers, Weight};
pub use threads::{Clock, Thread, ThreadId};
pub use times::{
    Disagreement, Interval, RequestSpan, RequestSpans, Shares, ThreadChange, ThreadEvent,
    TimedSample, Times,
};
pub use waits::{
    Detail, EndedBy, Futex, Holder, Idleness, Peer, Protocol, Reason, Resource, Side, Socket,
    Transport, Wait, WaitKind,
};
pub use walk_ends::WalkEnds;
