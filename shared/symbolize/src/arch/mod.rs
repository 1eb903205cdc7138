//! Names of kernel functions that depend on the architecture.

#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "x86_64")]
use x86_64 as machine;

#[cfg(not(target_arch = "x86_64"))]
compile_error!(
    "shared/symbolize/src/arch has no module for this architecture: one provides the names of the \
     kernel's functions at entries by interrupts"
);

pub(crate) use machine::is_interrupt_entry;
