//! Names of the kernel's entry functions, which depend on the architecture.

#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "x86_64")]
use x86_64 as machine;

#[cfg(not(target_arch = "x86_64"))]
compile_error!(
    "shared/waits/src/arch has no module for this architecture: one provides the names of the \
     kernel's functions at entries by interrupts and by system calls"
);

pub use machine::is_interrupt_entry;
pub(crate) use machine::{SYSTEM_CALL_ENTRY, compat_system_call, system_call};
