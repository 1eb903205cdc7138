//! Names of the kernel's entry functions on x86-64.

/// Name of the function to which the entry code passes a system call
/// (arch/x86/include/asm/syscall_wrapper.h).
macro_rules! system_call {
    ($call:literal) => {
        concat!("__x64_sys_", $call)
    };
}
pub(crate) use system_call;

/// Name of the function to which the entry code passes a system call of 32-bit code.
macro_rules! compat_system_call {
    ($call:literal) => {
        concat!("__ia32_sys_", $call)
    };
}
pub(crate) use compat_system_call;

/// Functions that call the functions of system calls, innermost first
/// (arch/x86/entry/syscall_64.c).
pub(crate) const SYSTEM_CALL_ENTRY: [&str; 2] = ["x64_sys_call", "do_syscall_64"];

/// Returns whether interrupts, and not exceptions, enter the kernel by this function
/// (arch/x86/include/asm/idtentry.h).
#[must_use]
pub fn is_interrupt_entry(name: &str) -> bool {
    name.starts_with("asm_sysvec_")
        || matches!(
            name,
            "asm_common_interrupt" | "asm_spurious_interrupt" | "asm_exc_nmi"
        )
}
