//! Writing what was measured: one module per format.
//!
//! - [`folded`]: one line per stack, for flame graph tools and for reading back
//! - [`classic`]: several lines per stack, leaf first, as bcc prints them
//! - [`svg`]: an interactive flame graph of states
//! - [`clocks`]: one tab-separated row per thread
//! - [`distribution`]: spans by length: histograms, percentiles, JSON
//! - [`report`]: tables and analyses to be read by people

pub mod classic;
pub mod clocks;
pub mod distribution;
pub mod folded;
mod form;
mod lines;
pub mod report;
mod stack_text;
pub mod svg;

pub use form::Form;

#[cfg(test)]
mod fixture;
