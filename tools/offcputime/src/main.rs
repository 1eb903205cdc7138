//! offcputime: where threads spend the time in which they are off the CPU.

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run_tool::<offcputime::Arguments>(&cli::CommandLine::of_process("offcputime"))
}
