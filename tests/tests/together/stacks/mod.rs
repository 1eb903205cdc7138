//! Stacks of programs that others wrote, and of programs made to be difficult.

mod gdb;
mod limits;
mod odd_frames;
mod programs;
mod tables_alone;
