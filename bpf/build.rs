//! Compiles the BPF programs and generates a skeleton for each.

mod compile;

use std::process::ExitCode;

fn main() -> ExitCode {
    compile::compile(".")
}
