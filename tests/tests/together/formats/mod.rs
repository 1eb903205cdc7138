//! What is written for viewers, read by those viewers.

mod frames;
mod json;
mod pprof;
mod sums;
