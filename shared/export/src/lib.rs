//! Writers of measurements, one module per format.
//!
//! Formats of whole profiles:
//!
//! - [`folded`]: one line per stack, for flame graph tools and for reading back
//! - [`classic`]: several lines per stack, leaf first, as bcc prints them
//! - [`svg`]: an interactive flame graph
//! - [`pprof`]: for `go tool pprof` and other programs that read its profiles
//! - [`speedscope`]: for speedscope.app
//! - [`perf_script`]: as `perf script` prints samples
//! - [`perfetto`]: a timeline for ui.perfetto.dev
//! - [`json`]: an object, for programs
//! - [`chrome`]: a timeline as Chrome's trace events
//! - [`firefox`]: a timeline for Firefox Profiler
//! - [`waits`]: a table of the resources that threads waited for
//! - [`capture`]: the whole measurement, for later analysis and for other machines
//!
//! Formats of parts of a profile:
//!
//! - [`clocks`]: one tab-separated row per thread
//! - [`distribution`]: spans by length: histograms, percentiles, JSON
//! - [`diff`]: differences between two profiles
//!
//! [`text`] has the texts of stacks, waits and figures.

pub mod diff;
pub mod distribution;
mod format;
mod formats;
mod lanes;
mod measure;
pub mod text;

pub use format::{Format, Needs};
pub use formats::{
    capture, chrome, classic, clocks, firefox, folded, json, perf_script, perfetto, pprof,
    speedscope, svg, waits,
};
pub use text::options::{Options, Written};

#[cfg(test)]
mod fixture;
// `formats` uses all of these profiles.
#[cfg(test)]
#[allow(dead_code)]
mod timeline_fixture;
