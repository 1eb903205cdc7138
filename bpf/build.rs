//! Compiles the BPF programs. Generates a skeleton for each object, and typed handles for the
//! names in the objects.

mod compile;
mod constants;
mod handles;

use std::process::ExitCode;

#[allow(clippy::print_stderr)]
fn main() -> ExitCode {
    if let Err(error) = constants::generate() {
        eprintln!("cannot share constants: {error}");
        return ExitCode::FAILURE;
    }
    let compiled = compile::compile(".");
    if compiled == ExitCode::SUCCESS
        && let Err(error) = handles::generate()
    {
        eprintln!("cannot name what the programs have: {error}");
        return ExitCode::FAILURE;
    }
    compiled
}
