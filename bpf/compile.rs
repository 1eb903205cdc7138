//! What build scripts have in common.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use libbpf_cargo::SkeletonBuilder;

/// Compiles `src/NAME.bpf.c` for each name, and generates a skeleton for it. `bpf` is
/// the folder of the tools' programs, which it may include.
pub(crate) fn compile(programs: &[&str], bpf: &str) -> ExitCode {
    for folder in ["src", &format!("{bpf}/src"), &format!("{bpf}/include")] {
        println!("cargo:rerun-if-changed={folder}");
    }
    let Some(out) = env::var_os("OUT_DIR").map(PathBuf::from) else {
        eprintln!("OUT_DIR is not set: build.rs runs under cargo only");
        return ExitCode::FAILURE;
    };
    let include = format!("-I{bpf}/include");
    for program in programs {
        let source = format!("src/{program}.bpf.c");
        let built = SkeletonBuilder::new()
            .source(&source)
            .clang_args([
                include.as_str(),
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
