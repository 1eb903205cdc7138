//! oncputime: where threads spend the time in which they run.

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run_tool::<oncputime::Arguments>(&cli::CommandLine::of_process("oncputime"))
}
