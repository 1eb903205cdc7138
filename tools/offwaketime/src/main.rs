//! `offwaketime` measures blocked time of threads by stack and waker.

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run_tool::<offwaketime::Arguments>(&cli::CommandLine::of_process("offwaketime"))
}
