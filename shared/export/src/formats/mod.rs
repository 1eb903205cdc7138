//! One module per format.

pub mod capture;
pub mod chrome;
pub mod classic;
pub mod clocks;
pub mod firefox;
pub mod folded;
pub mod json;
pub mod perf_script;
pub mod perfetto;
pub mod pprof;
pub mod speedscope;
pub mod svg;
pub mod waits;
