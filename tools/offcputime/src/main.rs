//! `offcputime` measures off-CPU time of threads by stack.

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run_tool::<offcputime::Arguments>(&cli::CommandLine::of_process("offcputime"))
}
