//! What is written for viewers, read by those viewers.

mod browser;
mod frames;
mod json;
mod pprof;
mod recorded;
mod sums;
