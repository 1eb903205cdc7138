//! Everything that depends on the architecture: register numbers, frame layouts, and instruction
//! decoding.
//!
//! Each architecture has a module with all names that are re-exported here. `bpf/include/arch`
//! provides the same for the unwind in BPF.

#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "x86_64")]
use x86_64 as machine;

#[cfg(not(target_arch = "x86_64"))]
compile_error!(
    "shared/unwind/src/arch has no module for this architecture: one provides the DWARF numbers \
     of registers, the places of saved registers, the rules of linkage tables, stubs, clone and \
     exception handlers, and the analysis of code that no call frame information describes"
);

// Registers, as DWARF numbers.
pub(crate) use machine::{
    FRAME_POINTER, GENERAL_REGISTERS, LINK_REGISTER, RESULT, RETURN_ADDRESS, STACK_POINTER,
};
// Frames of functions, and frames that the kernel builds for signal handlers.
pub(crate) use machine::{
    RETURN_ADDRESS_AT_CFA, SIGNAL_CONTEXT, SIGNAL_FRAME_BP, SIGNAL_FRAME_IP, SIGNAL_FRAME_LINK,
    SIGNAL_FRAME_SP,
};
// Procedure linkage tables.
pub(crate) use machine::{
    cfa_in_linkage_table, described_linkage_table, direct_linkage_table, lazy_linkage_table,
};
// Code whose call frame information is wrong or missing.
pub(crate) use machine::{
    CORRECTED_CODE_LIMIT, analyse, correct_rows, find_called, find_taken, read_stub, rule_of_clone,
};
