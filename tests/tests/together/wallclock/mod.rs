//! wallclock's files.

mod content;
mod files;
