//! The x86-64 architecture.

mod cloned;
mod code;
mod handover;
mod plt;
mod realigned;
mod registers;
mod stub;

use std::ops::Range;

use crate::rule::Rule;

pub(crate) use cloned::rule_of_clone;
pub(crate) use code::{analyse, find_called, find_taken};
pub(crate) use plt::{
    cfa_in_linkage_table, described_linkage_table, direct_linkage_table, lazy_linkage_table,
};
pub(crate) use registers::{
    FRAME_POINTER, GENERAL_REGISTERS, LINK_REGISTER, RESULT, RETURN_ADDRESS, RETURN_ADDRESS_AT_CFA,
    SIGNAL_CONTEXT, SIGNAL_FRAME_BP, SIGNAL_FRAME_IP, SIGNAL_FRAME_LINK, SIGNAL_FRAME_SP,
    STACK_POINTER,
};
pub(crate) use stub::read_stub;

/// Maximum size of the code that is read to correct the rows of a file, in bytes.
pub(crate) const CORRECTED_CODE_LIMIT: u64 = 1 << 20;

/// Corrects the rows of functions whose frames compilers describe wrongly. `code` reads the bytes
/// at addresses.
pub(crate) fn correct_rows(
    rows: &mut Vec<(u64, Rule)>,
    code: &mut impl FnMut(Range<u64>) -> Option<Vec<u8>>,
) {
    handover::cut_handed_over(rows, code);
    realigned::restore_frame_pointer(rows, code);
}
