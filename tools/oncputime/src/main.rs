//! `oncputime` samples running threads by stack.

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run_tool::<oncputime::Arguments>(&cli::CommandLine::of_process("oncputime"))
}
