//! Stacks whose frames are known, with the time that was spent in them.

mod chains;
mod changes;
mod returns;
mod unwind_cache;
