//! x86-64.

/// Whether an interrupt of a device or of another CPU enters the kernel by this function
/// (arch/x86/include/asm/idtentry.h). Exceptions are none.
pub(crate) fn is_interrupt_entry(name: &str) -> bool {
    name.starts_with("asm_sysvec_") || name == "asm_common_interrupt"
}
