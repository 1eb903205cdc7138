//! Writing what was measured: one module per format.
//!
//! - [`folded`]: one line per stack, for flame graph tools and for reading back
//! - [`classic`]: several lines per stack, leaf first, as bcc prints them
//! - [`capture`]: all of it, for later and for elsewhere
//! - [`svg`]: an interactive flame graph of states
//! - [`clocks`]: one tab-separated row per thread
//! - [`distribution`]: spans by length: histograms, percentiles, JSON
//! - [`report`]: tables and analyses to be read by people

pub mod capture;
pub mod classic;
pub mod clocks;
pub mod distribution;
pub mod folded;
mod format;
mod lines;
mod options;
pub mod report;
mod stack_text;
pub mod svg;

pub use format::{FORMATS, Format};

#[cfg(test)]
mod fixture;
