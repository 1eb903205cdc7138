//! Compiles the BPF programs of the checks.

#[path = "../compile.rs"]
mod compile;

use std::process::ExitCode;

fn main() -> ExitCode {
    compile::compile("..")
}
