//! offwaketime: where threads block, and who ends it.

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run_tool::<offwaketime::Arguments>(&cli::CommandLine::of_process("offwaketime"))
}
