//! The BPF programs, as skeletons to load, and the types they share with user
//! space.
//!
//! `src/*.bpf.c` holds one program per tool, `include/` what they share. The
//! build compiles them and generates a module for each.

mod handles;
pub mod types;

pub use handles::{ConstantName, ConstantValue, MapName, ProgramName, VariableName};

/// What a file of `src/` was compiled to.
#[derive(Clone, Copy, Debug)]
pub struct Object {
    /// The name of the file, less `.bpf.c`.
    pub name: &'static str,
    /// An ELF file with BTF, for libbpf to load.
    pub elf: &'static [u8],
    /// The names of the kernel's types that it reads, in order.
    pub types: &'static [&'static str],
}

include!(concat!(env!("OUT_DIR"), "/programs.rs"));
include!(concat!(env!("OUT_DIR"), "/handles.rs"));
