//! Counts of programs: maps that user space drains while the programs run, and their sums.

mod double_buffer;
mod parts;
pub(crate) mod sums;

pub(crate) use double_buffer::DoubleBuffer;
pub(crate) use parts::Parts;
pub(crate) use sums::{Arrived, Sums};
