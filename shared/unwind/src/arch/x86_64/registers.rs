//! Registers and frames, from the System V ABI and the kernel's headers.

use gimli::{Register, X86_64};

/// Registers that a walk starts from, by DWARF number from 0 on (System V ABI for x86-64,
/// figure 3.36).
pub(crate) const GENERAL_REGISTERS: usize = 16;

/// Register `rbp`.
pub(crate) const FRAME_POINTER: Register = X86_64::RBP;

/// Register `rsp`.
pub(crate) const STACK_POINTER: Register = X86_64::RSP;

/// Register `rax`, in which a system call returns its result.
pub(crate) const RESULT: Register = X86_64::RAX;

/// Column of the return address in call frame information.
pub(crate) const RETURN_ADDRESS: Register = X86_64::RA;

/// Register in which a call leaves the return address. There is none: the address is on the
/// stack.
pub(crate) const LINK_REGISTER: Option<Register> = None;

/// Bytes from the canonical frame address to the return address (section 3.2.2).
pub(crate) const RETURN_ADDRESS_AT_CFA: i64 = -8;

/// Bytes from the stack pointer to `struct sigcontext` when a signal handler returns
/// (`struct rt_sigframe` of arch/x86/include/asm/sigframe.h, without its first word).
pub(crate) const SIGNAL_CONTEXT: i32 = 40;

/// Offset of rbp in `struct sigcontext_64` of arch/x86/include/uapi/asm/sigcontext.h.
pub(crate) const SIGNAL_FRAME_BP: i64 = 80;

/// Offset of rsp in `struct sigcontext_64`.
pub(crate) const SIGNAL_FRAME_SP: i64 = 120;

/// Offset of rip in `struct sigcontext_64`.
pub(crate) const SIGNAL_FRAME_IP: i64 = 128;

/// Offset of the link register in `struct sigcontext_64`. There is none.
pub(crate) const SIGNAL_FRAME_LINK: Option<i64> = None;
