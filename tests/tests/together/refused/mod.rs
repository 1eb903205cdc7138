//! What cannot be done, and how that is said.

mod command_lines;
mod machines;
mod outputs;
mod unserved;
