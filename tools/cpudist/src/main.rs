//! cpudist: how long threads stay on the CPU at a time, or off it.

use std::process::ExitCode;

fn main() -> ExitCode {
    cpudist::run(&cli::CommandLine::of_process("cpudist"))
}
