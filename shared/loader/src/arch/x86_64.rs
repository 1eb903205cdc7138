//! Names on x86-64.

/// Per-CPU variables that have the preemption count, each in some kernels
/// (arch/x86/include/asm/preempt.h): the second one in 6.2 to 6.14.
pub(crate) const PREEMPT_COUNTS: &[&str] = &["__preempt_count", "pcpu_hot"];
