//! Cost of a tool outside of its BPF programs: to start and to end, to build unwind tables, to
//! process messages, to write output.

pub(crate) mod building;
pub(crate) mod commands;
pub(crate) mod formats;
pub(crate) mod start_and_end;
pub(crate) mod tables;
