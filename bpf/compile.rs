//! Compiles BPF programs, for several build scripts.

use std::env;
use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libbpf_cargo::SkeletonBuilder;
use libbpf_rs::btf::Btf;

#[path = "layout.rs"]
mod layout;
#[path = "relocations.rs"]
mod relocations;

/// Compiles each `src/NAME.bpf.c` to `NAME.bpf.o`. Generates a skeleton of each object, and
/// `programs.rs` with a module for each object and a list of all. `bpf` is the folder of the
/// tools' programs, which the sources may include.
#[allow(clippy::print_stderr)]
pub(crate) fn compile(bpf: &str) -> ExitCode {
    for folder in ["src", &format!("{bpf}/src"), &format!("{bpf}/include")] {
        println!("cargo:rerun-if-changed={folder}");
    }
    let Some(out) = env::var_os("OUT_DIR").map(PathBuf::from) else {
        eprintln!("OUT_DIR is not set: build.rs runs under cargo only");
        return ExitCode::FAILURE;
    };
    let programs = match programs() {
        Ok(programs) => programs,
        Err(error) => {
            eprintln!("cannot list src: {error}");
            return ExitCode::FAILURE;
        }
    };
    let includes = match include_flags(bpf) {
        Ok(includes) => includes,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    // BTF contains the paths of sources. Without this folder, two builds make the same objects.
    let here = match env::current_dir() {
        Ok(folder) => format!("-ffile-prefix-map={}=bpf", folder.display()),
        Err(error) => {
            eprintln!("cannot find the current folder: {error}");
            return ExitCode::FAILURE;
        }
    };
    for program in &programs {
        let source = format!("src/{program}.bpf.c");
        let built = SkeletonBuilder::new()
            .source(&source)
            .obj(out.join(format!("{program}.bpf.o")))
            .clang_args([
                includes[0].as_str(),
                includes[1].as_str(),
                here.as_str(),
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
    for program in &programs {
        if let Err(error) = assert_layout(&out, program) {
            eprintln!("cannot assert the layout of {program}'s types: {error}");
            return ExitCode::FAILURE;
        }
    }
    if let Err(error) = fs::write(out.join("programs.rs"), modules(&programs)) {
        eprintln!("cannot write programs.rs: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Returns the compiler flags for the headers in `bpf/include` and for the headers of the target
/// architecture, which others include by their file names.
///
/// # Errors
/// The architecture has no headers.
pub(crate) fn include_flags(bpf: &str) -> Result<[String; 2], String> {
    let architecture = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let folder = format!("{bpf}/include/arch/{architecture}");
    if !Path::new(&folder).is_dir() {
        return Err(format!(
            "cannot build BPF programs for {architecture}: there is no folder {folder}; \
             CONTRIBUTING.md says what an architecture adds"
        ));
    }
    Ok([format!("-I{bpf}/include"), format!("-I{folder}")])
}

/// Writes `NAME.layout.rs`, with assertions on the layout of structs and the list of the
/// kernel's types.
fn assert_layout(out: &Path, program: &str) -> Result<(), Box<dyn Error>> {
    let path = out.join(format!("{program}.bpf.o"));
    let elf = fs::read(&path)?;
    let skeleton = fs::read_to_string(out.join(format!("{program}.skel.rs")))?;
    let btf = Btf::from_raw(program, &elf)?.ok_or("it has no BTF")?;
    let assertions = layout::assertions(&btf, &skeleton);
    let types = relocations::names_of_types(&path, &btf)?;
    let types = format!("pub const TYPES: &[&str] = &{types:?};\n");
    Ok(fs::write(
        out.join(format!("{program}.layout.rs")),
        assertions + &types,
    )?)
}

/// Returns each NAME of `src/NAME.bpf.c`, sorted.
pub(crate) fn programs() -> io::Result<Vec<String>> {
    let mut programs = Vec::new();
    for entry in fs::read_dir("src")? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        programs.extend(name.strip_suffix(".bpf.c").map(str::to_owned));
    }
    programs.sort();
    Ok(programs)
}

/// Returns the text of `programs.rs`: a module for each skeleton with the compiled object, and
/// a list of the objects.
fn modules(programs: &[String]) -> String {
    let module = |program: &String| {
        format!(
            "/// `{program}.bpf.c`: its skeleton, and its object.\n\
             #[allow(missing_docs, unreachable_pub, warnings, clippy::all, clippy::restriction)]\n\
             pub mod {program} {{\n    \
             include!(concat!(env!(\"OUT_DIR\"), \"/{program}.skel.rs\"));\n    \
             include!(concat!(env!(\"OUT_DIR\"), \"/{program}.layout.rs\"));\n    \
             pub const OBJECT: crate::Object = crate::Object {{\n        \
             name: \"{program}\",\n        \
             elf: include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{program}.bpf.o\")),\n        \
             types: TYPES,\n    \
             }};\n\
             }}\n"
        )
    };
    let modules: String = programs.iter().map(module).collect();
    let object = |program: &String| format!("    {program}::OBJECT,\n");
    let objects: String = programs.iter().map(object).collect();
    format!("{modules}/// All objects.\npub const OBJECTS: &[Object] = &[\n{objects}];\n")
}
