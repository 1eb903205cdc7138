//! Requests that the tools refuse, and their error messages.

mod command_lines;
mod machines;
mod outputs;
mod unserved;
