//! Names of kernel variables that depend on the architecture.

#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "x86_64")]
use x86_64 as machine;

#[cfg(not(target_arch = "x86_64"))]
compile_error!(
    "shared/loader/src/arch has no module for this architecture: one provides the names of the \
     per-CPU variables that have the preemption count, none where it is elsewhere"
);

pub(crate) use machine::PREEMPT_COUNTS;
