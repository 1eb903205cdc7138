//! Registers and frames of the System V ABI and of the kernel's headers.

use gimli::{Register, X86_64};

/// Number of registers from which an unwind starts. Their DWARF numbers begin at 0 (System V ABI
/// for x86-64, figure 3.36).
pub(crate) const GENERAL_REGISTERS: usize = 16;

/// Register `rbp`.
pub(crate) const FRAME_POINTER: Register = X86_64::RBP;

/// Register `rsp`.
pub(crate) const STACK_POINTER: Register = X86_64::RSP;

/// Register `rax`, in which a system call returns its result.
pub(crate) const RESULT: Register = X86_64::RAX;

/// Column of the return address in call frame information.
pub(crate) const RETURN_ADDRESS: Register = X86_64::RA;

/// Register in which a call leaves the return address. On x86-64 there is none, because a call
/// pushes the address on the stack.
pub(crate) const LINK_REGISTER: Option<Register> = None;

/// Distance from the canonical frame address to the return address, in bytes (section 3.2.2).
pub(crate) const RETURN_ADDRESS_AT_CFA: i64 = -8;

/// Distance from the stack pointer to `struct sigcontext` when a signal handler returns, in bytes
/// (`struct rt_sigframe` of arch/x86/include/asm/sigframe.h, without its first word).
pub(crate) const SIGNAL_CONTEXT: i32 = 40;

/// Offset of rbp in `struct sigcontext_64` of arch/x86/include/uapi/asm/sigcontext.h.
pub(crate) const SIGNAL_FRAME_BP: i64 = 80;

/// Offset of rsp in `struct sigcontext_64`.
pub(crate) const SIGNAL_FRAME_SP: i64 = 120;

/// Offset of rip in `struct sigcontext_64`.
pub(crate) const SIGNAL_FRAME_IP: i64 = 128;

/// Offset of the link register in `struct sigcontext_64`. x86-64 has no link register.
pub(crate) const SIGNAL_FRAME_LINK: Option<i64> = None;
