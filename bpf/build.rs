//! Compiles the BPF programs and generates a skeleton for each.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use libbpf_cargo::SkeletonBuilder;

const PROGRAMS: [&str; 4] = ["cpudist", "offcputime", "offwaketime", "oncputime"];

fn main() -> ExitCode {
    println!("cargo:rerun-if-changed=include");
    let Some(out) = env::var_os("OUT_DIR").map(PathBuf::from) else {
        eprintln!("OUT_DIR is not set: build.rs runs under cargo only");
        return ExitCode::FAILURE;
    };
    for program in PROGRAMS {
        let source = format!("src/{program}.bpf.c");
        println!("cargo:rerun-if-changed={source}");
        let built = SkeletonBuilder::new()
            .source(&source)
            .clang_args([
                "-Iinclude",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-Wno-unused-parameter",
            ])
            .build_and_generate(out.join(format!("{program}.skel.rs")));
        if let Err(error) = built {
            eprintln!("cannot build {source}: {error:#}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
