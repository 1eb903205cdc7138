//! Names each kind of location. This is the second step.

pub(crate) mod demangle;
pub(crate) mod files;
pub(crate) mod frames;
pub(crate) mod interpreted;
pub(crate) mod kernel;
pub(crate) mod namer;
pub(crate) mod perf_map;
pub(crate) mod vdso;
pub(crate) mod wanted;
