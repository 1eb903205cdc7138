//! BPF programs, as skeletons to load, and the types that they share with user space.
//!
//! `src/*.bpf.c` has one object per tool, `include/` the common headers. The build compiles the
//! objects and generates a module for each.

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
    /// Names of the kernel's types that its programs read, sorted.
    pub types: &'static [&'static str],
}

include!(concat!(env!("OUT_DIR"), "/programs.rs"));
include!(concat!(env!("OUT_DIR"), "/handles.rs"));
