//! Stacks of programs of other projects, and of programs that are hard to unwind.

mod capacity;
mod gdb;
mod limits;
mod mounted;
mod odd_frames;
mod programs;
mod tables_alone;
