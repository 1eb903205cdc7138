//! `cpudist` measures the distribution of time that threads spend on the CPU, or off it, at a time.

use std::process::ExitCode;

fn main() -> ExitCode {
    cpudist::run(&cli::CommandLine::of_process("cpudist"))
}
