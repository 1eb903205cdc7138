//! What every tool of the suite does alike: flags, signals, the measuring
//! window, errors with their exit statuses, and output files.
//!
//! A tool that counts by stack is a [`StackTool`], and its `main` is [`run_tool`]. Others
//! are made of the parts:
//!
//! ```no_run
//! use clap::Parser;
//!
//! /// Shows where threads block.
//! #[derive(Parser)]
//! struct Arguments {
//!     #[command(flatten)]
//!     target: cli::TargetFlags,
//!     #[command(flatten)]
//!     duration: cli::DurationFlags,
//!     #[command(flatten)]
//!     output: cli::OutputFlags,
//!     #[command(flatten)]
//!     control: cli::ControlFlags,
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     cli::run("sometool", || {
//!         let arguments: Arguments = cli::parse()?;
//!         arguments.target.validate()?;
//!         let output = cli::Output::new(arguments.output.output.clone())?;
//!         let mut window = cli::Window::new(arguments.duration.get(), arguments.control.control_fd)?;
//!         // … attach …
//!         let start = window.begin()?;
//!         let (events, _) = std::io::pipe()?;
//!         let stop = window.follow(&events, |_stop| Ok(true))?;
//!         output.write(|writer| writeln!(writer, "{}", stop - start))
//!     })
//! }
//! ```

mod control;
mod error;
mod flags;
mod interval_flags;
mod meta;
mod output;
mod parse;
mod signals;
mod stack_tool;
pub mod values;
mod window;

pub use error::{reason, run, usage};
pub use flags::{
    ControlFlags, DurationFlags, OutputFlags, StackFlags, TargetFlags, check_processes,
    check_threads,
};
pub use interval_flags::IntervalFlags;
pub use output::{Output, write_file};
pub use parse::parse;
pub use signals::Signals;
pub use stack_tool::{AlsoWritten, CommonFlags, StackTool, WriteProfile, run_tool, weight_of};
pub use window::Window;

pub use loader::{monotonic_ns, sleep_until};
