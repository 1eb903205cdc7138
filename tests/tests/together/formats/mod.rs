//! Files for viewers, as these viewers read them.

mod browser;
mod frames;
mod json;
mod page;
mod perfetto;
mod pprof;
mod recorded;
mod sums;
mod timelines;
