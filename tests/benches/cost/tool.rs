//! Cost of a tool outside its BPF programs: starting and ending, building unwind tables, processing
//! messages, and writing output.

pub(crate) mod building;
pub(crate) mod commands;
pub(crate) mod formats;
pub(crate) mod page;
pub(crate) mod start_and_end;
pub(crate) mod tables;
