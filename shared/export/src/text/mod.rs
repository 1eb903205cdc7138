//! How stacks read as text, whatever the format it is put in.

pub(crate) mod brief;
pub(crate) mod cut;
pub(crate) mod drawn;
pub(crate) mod frames;
pub(crate) mod lines;
pub(crate) mod options;
pub(crate) mod waits;
