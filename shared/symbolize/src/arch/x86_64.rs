//! The x86-64 architecture.

/// Returns whether an interrupt of a device or of another CPU enters the kernel by this function
/// (arch/x86/include/asm/idtentry.h). Exceptions are no interrupts.
pub(crate) fn is_interrupt_entry(name: &str) -> bool {
    name.starts_with("asm_sysvec_") || name == "asm_common_interrupt"
}
