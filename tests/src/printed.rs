//! Readers for the output of programs in the documented formats.

pub mod chain;
pub mod clocks;
pub mod folded;
pub mod output;
pub mod phases;
pub mod python;
pub mod refusal;
pub mod samples;
pub mod spans;
pub mod table;
pub mod user_stacks;
pub mod wakers;
