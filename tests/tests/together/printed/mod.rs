//! Names, flags and forms of the output.

mod debuginfod;
pub(crate) mod hostile;
mod names;
mod own_frames;
mod spans;
mod stacks;
mod symbols;
mod wakers;
