//! `cpudist` measures the distribution of the lengths of threads' stays on the CPU or off it.

use std::process::ExitCode;

fn main() -> ExitCode {
    cpudist::run(&cli::CommandLine::of_process("cpudist"))
}
