//! `wallclock` shows where every thread's time goes. It runs oncputime and offcputime side by side
//! over the same window.

use std::process::ExitCode;

fn main() -> ExitCode {
    wallclock::run(&cli::CommandLine::of_process("wallclock"))
}
