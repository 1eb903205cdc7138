//! x86-64: registers and frames by the System V ABI and the kernel's headers.

mod cloned;
mod code;
mod handover;
mod plt;
mod realigned;
mod stub;

use std::ops::Range;

use gimli::{Register, X86_64};

use crate::Rule;

pub(crate) use cloned::rule_of_clone;
pub(crate) use code::{analyse, find_called, find_taken};
pub(crate) use plt::{
    cfa_in_linkage_table, described_linkage_table, direct_linkage_table, lazy_linkage_table,
};
pub(crate) use stub::read_stub;

/// Bytes of code that are read to correct the rows of a file.
pub(crate) const CORRECTED_CODE_LIMIT: u64 = 1 << 20;

/// Corrects the rows of a function where compilers describe its frame wrongly. `code` reads
/// what lies at addresses.
pub(crate) fn correct_rows(
    rows: &mut Vec<(u64, Rule)>,
    code: &mut impl FnMut(Range<u64>) -> Option<Vec<u8>>,
) {
    handover::cut_handed_over(rows, code);
    realigned::restore_frame_pointer(rows, code);
}

/// Registers that a walk starts from, by DWARF number from 0 on (System V ABI for x86-64,
/// figure 3.36).
pub(crate) const GENERAL_REGISTERS: usize = 16;

/// rbp.
pub(crate) const FRAME_POINTER: Register = X86_64::RBP;

/// rsp.
pub(crate) const STACK_POINTER: Register = X86_64::RSP;

/// rax, in which a system call returns its result.
pub(crate) const RESULT: Register = X86_64::RAX;

/// Column of the return address in call frame information.
pub(crate) const RETURN_ADDRESS: Register = X86_64::RA;

/// Register in which a call leaves the return address: it is on the stack.
pub(crate) const LINK_REGISTER: Option<Register> = None;

/// Bytes from the canonical frame address to the return address (section 3.2.2).
pub(crate) const RETURN_ADDRESS_AT_CFA: i64 = -8;

/// Bytes from the stack pointer to `struct sigcontext` when a signal handler returns
/// (`struct rt_sigframe` of arch/x86/include/asm/sigframe.h, without its first word).
pub(crate) const SIGNAL_CONTEXT: i32 = 40;

/// Offset of rbp in `struct sigcontext_64` of arch/x86/include/uapi/asm/sigcontext.h.
pub(crate) const SIGNAL_FRAME_BP: i64 = 80;

/// Offset of rsp in it.
pub(crate) const SIGNAL_FRAME_SP: i64 = 120;

/// Offset of rip in it.
pub(crate) const SIGNAL_FRAME_IP: i64 = 128;

/// Offset of the link register in it.
pub(crate) const SIGNAL_FRAME_LINK: Option<i64> = None;
