//! The x86-64 architecture.

/// Name of the architecture in messages.
pub const ARCHITECTURE: &str = "x86-64";

/// `e_machine` of ELF files with code for the architecture.
pub const ELF_MACHINE: u16 = libc::EM_X86_64;
