//! Stacks with known frames and known times.

mod chains;
mod changes;
mod kernel_stack_cache;
mod returns;
mod unwind_cache;
