//! `wallclock`: where every thread's time goes, from one oncputime and one
//! offcputime run side by side over the same window.

use std::process::ExitCode;

fn main() -> ExitCode {
    wallclock::run(&cli::CommandLine::of_process("wallclock"))
}
