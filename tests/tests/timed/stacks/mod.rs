//! Stacks whose frames are known, with the time that was spent in them.

mod chains;
mod changes;
mod kernel_stack_cache;
mod returns;
mod unwind_cache;
