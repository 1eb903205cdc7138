//! Compiles the BPF programs and generates a skeleton for each.

mod compile;
mod constants;

use std::process::ExitCode;

#[allow(clippy::print_stderr)]
fn main() -> ExitCode {
    if let Err(error) = constants::generate() {
        eprintln!("cannot share constants: {error}");
        return ExitCode::FAILURE;
    }
    compile::compile(".")
}
