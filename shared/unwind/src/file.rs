//! ELF files, read with bounds.

pub(crate) mod elf;
pub(crate) mod objects;
pub(crate) mod source;
pub(crate) mod symbols;
