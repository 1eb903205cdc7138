//! Names of kernel variables on x86-64.

/// Per-CPU variables that contain the preemption count (arch/x86/include/asm/preempt.h). Kernels
/// 6.2 to 6.14 have the second one, other kernels the first one.
pub(crate) const PREEMPT_COUNTS: &[&str] = &["__preempt_count", "pcpu_hot"];
