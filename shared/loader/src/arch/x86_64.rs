//! Names of kernel variables on x86-64.

/// Per-CPU variables that contain the preemption count (arch/x86/include/asm/preempt.h). Kernels
/// 6.2 to 6.14 have `pcpu_hot`, and other kernels have `__preempt_count`.
pub(crate) const PREEMPT_COUNTS: &[&str] = &["__preempt_count", "pcpu_hot"];
