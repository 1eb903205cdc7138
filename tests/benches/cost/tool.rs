//! What a tool takes beside its hooks: to start and to end, to build unwind tables, to keep
//! up with what programs send, to write.

pub(crate) mod building;
pub(crate) mod commands;
pub(crate) mod formats;
pub(crate) mod start_and_end;
pub(crate) mod tables;
