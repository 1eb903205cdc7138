//! wallclock's files.

mod content;
mod files;
mod machine;
mod processes;
mod progress;
