//! Mappings of processes, and the files behind them.

pub(crate) mod copies;
pub(crate) mod images;
pub(crate) mod maps;
pub(crate) mod memory_image;
pub(crate) mod open;
pub(crate) mod proc;
pub(crate) mod processes;
