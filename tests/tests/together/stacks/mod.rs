//! Stacks of programs that others wrote, and of programs made to be difficult.

mod capacity;
mod gdb;
mod limits;
mod mounted;
mod odd_frames;
mod programs;
mod tables_alone;
