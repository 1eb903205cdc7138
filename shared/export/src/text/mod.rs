//! Texts of stacks and waits, shared by all formats.

pub(crate) mod brief;
pub(crate) mod cut;
pub(crate) mod drawn;
pub(crate) mod frames;
pub(crate) mod lines;
pub(crate) mod options;
pub(crate) mod waits;
