//! Output of wallclock.

mod content;
mod files;
mod machine;
mod processes;
mod progress;
