//! What a profile's rows are.

mod brief;
mod bursts;
mod code;
mod detail;
mod idleness;
mod losses;
mod meta;
mod processes;
mod reason;
mod retain;
mod sample;
mod threads;
mod times;
mod walk_ends;

pub use bursts::Bursts;
pub use code::{Frame, FrameKind, Function, Module, ModuleKind};
pub use detail::Detail;
pub use idleness::Idleness;
pub use losses::Losses;
pub use meta::{Ending, Lengths, Meta, Rate, Sampling, Unit, Window};
pub use processes::Process;
pub use reason::{Reason, Why};
pub use retain::LastNames;
pub use sample::{Label, Labels, Sample, Stack, State, Waker, Wakers, Weight};
pub use threads::{Clock, Thread, ThreadId};
pub use times::{Disagreement, Interval, RequestSpan, RequestSpans, TimedSample, Times};
pub use walk_ends::WalkEnds;
