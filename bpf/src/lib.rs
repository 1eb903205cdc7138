//! BPF programs, as skeletons to load, and the types that the programs share with user space.
//!
//! The build compiles each `src/*.bpf.c` to an object, and generates a module for it. `include/`
//! has the common headers.

mod handles;
pub mod types;

pub use handles::{ConstantName, ConstantValue, MapName, ProgramName, VariableName};

/// Object compiled from a file of `src/`.
#[derive(Clone, Copy, Debug)]
pub struct Object {
    /// Name of the file, without `.bpf.c`.
    pub name: &'static str,
    /// ELF file with BTF, for libbpf to load.
    pub elf: &'static [u8],
    /// Names of the kernel's types that the object's programs read, sorted.
    pub types: &'static [&'static str],
}

include!(concat!(env!("OUT_DIR"), "/programs.rs"));
include!(concat!(env!("OUT_DIR"), "/handles.rs"));
