//! What programs count: in maps that are drained while they run, and added up.

mod double_buffer;
mod parts;
pub(crate) mod sums;

pub(crate) use double_buffer::DoubleBuffer;
pub(crate) use parts::Parts;
pub(crate) use sums::{Arrived, Sums};
