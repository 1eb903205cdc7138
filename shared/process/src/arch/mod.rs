//! Architecture that processes run on.

#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "x86_64")]
use x86_64 as machine;

#[cfg(not(target_arch = "x86_64"))]
compile_error!(
    "shared/process/src/arch has no module for this architecture: one provides its name and the \
     number of its machine in ELF files"
);

pub use machine::{ARCHITECTURE, ELF_MACHINE};
