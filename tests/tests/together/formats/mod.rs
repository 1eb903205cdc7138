//! Files for viewers, read by these viewers.

mod browser;
mod frames;
mod json;
mod pprof;
mod recorded;
mod sums;
