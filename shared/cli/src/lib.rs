//! Code that all tools of the suite share: flags, signals, the measurement window, errors with
//! their exit statuses, and output files.
//!
//! A tool that counts by stack implements [`StackTool`], and its `main` calls [`run_tool`]. Other
//! tools combine the parts themselves:
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
//!     let command_line = cli::CommandLine::of_process("sometool");
//!     cli::run(command_line.called(), || {
//!         let arguments: Arguments = command_line.parse()?;
//!         arguments.target.validate()?;
//!         let output = cli::Output::new(None)?;
//!         let mut window = cli::Window::new("tool", arguments.duration.get(), None, arguments.control.control_fd)?;
//!         // … attach …
//!         let start = window.begin(false)?;
//!         let (events, _) = std::io::pipe()?;
//!         let stop = window.follow(&events, None, |_stop| Ok(cli::Next::In(cli::Window::LONGEST_PATIENCE)))?;
//!         output.write(|writer| writeln!(writer, "{}", stop - start))
//!     })
//! }
//! ```

mod arch;
mod debug_files;
mod error;
mod flags;
mod goroutines;
mod memory;
mod meta;
mod output;
mod parse;
pub mod recording;
mod stack_tool;
mod targets;
mod window;

pub use collect::Recorder;
pub use debug_files::check_debuginfod;
pub use debuginfod::Choice as DebuginfodChoice;
pub use error::{reason, run, say, usage};
pub use flags::{
    CgroupFlags, Chosen, CommandFlags, ControlFlags, DebuginfodFlags, DurationFlags, FormatFlags,
    FrameFlags, HelpFlag, IntervalFlags, Measured, OutputFlags, PinnedMapFlags, ProcessFlags,
    RecorderFlags, Request, RequestedTargets, StackFlags, TargetFlags, ThreadNameFlags,
    TimelineFlags, VersionFlag, WaitFlags, WalkFlags, check_processes, check_threads, check_width,
    nobody_named, values,
};
pub use goroutines::{GoroutineFlags, Goroutines};
pub use memory::{Limited, limit_memory};
pub use meta::own_command_line;
pub use output::destinations::{Destinations, Planned, check_shows_times, format_of_file, pair};
pub use output::diagnostics::{count, left_out, list_losses};
pub use output::{Output, Place, Spool, report_look, write_file};
pub use parse::CommandLine;
pub use stack_tool::{CommonFlags, StackTool, run_tool, weight_of};
pub use targets::{Cgroups, HeldCommand, Processes, conclude};
pub use window::{Next, Patience, Signals, StartAt, Window};

pub use loader::{monotonic_ns, sleep_until};
