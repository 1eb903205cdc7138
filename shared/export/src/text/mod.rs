//! Texts of stacks, waits and figures, shared by all formats and by reports.

pub mod brief;
pub mod cut;
pub(crate) mod drawn;
pub mod frames;
pub(crate) mod lines;
pub mod numbers;
pub mod options;
pub(crate) mod title;
pub mod waits;
