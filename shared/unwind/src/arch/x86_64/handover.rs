//! Frames that become the frame of an exception handler.
//!
//! Functions that throw, such as `_Unwind_RaiseException`, end with GCC's `__builtin_eh_return`.
//! Before that, `uw_install_context_1` (libgcc/unwind-dw2.c) writes the handler's registers over
//! the frame's saved registers and return address. Call frame information does not describe this.
//! It would give the handler's function the thrower's frame.
//! thrower's frame.

use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};

use crate::rule::{Rule, cfa};

/// CFA just before the jump. The handler's stack pointer is in `rcx` (`EH_RETURN_STACKADJ_RTX` of
/// gcc/config/i386/i386.h), and the return address is below it.
const BEFORE_THE_JUMP: Rule = Rule::at(cfa::REGISTER + 2, 8);

/// Replaces the rows of a function from the point where it begins to write over its frame. The new
/// rule says that nothing leads to the caller. `code` reads the bytes at addresses.
pub(super) fn cut_handed_over(
    rows: &mut Vec<(u64, Rule)>,
    code: &mut impl FnMut(Range<u64>) -> Option<Vec<u8>>,
) {
    let jumps = |row: &(u64, Rule)| {
        (row.1.cfa, row.1.cfa_offset) == (BEFORE_THE_JUMP.cfa, BEFORE_THE_JUMP.cfa_offset)
    };
    let Some(jump) = rows.iter().position(jumps) else {
        return;
    };
    let Some(from) = last_call(rows[0].0..rows[jump].0, code) else {
        return;
    };
    // After the jump there may be code that does not lead to it.
    let behind = rows[jump..]
        .iter()
        .position(|row| row.1.cfa == cfa::FRAME_POINTER);
    let behind = behind.map_or(rows.len(), |rows| jump + rows);
    let first = rows.partition_point(|row| row.0 < from);
    rows.splice(first..behind, [(from, Rule::at(cfa::HANDED_OVER, 0))]);
}

/// Returns the address of the second byte of the last call in `range` to a function that does
/// something. The frame is still whole at the first byte of the call. `_Unwind_DebugHook`, at which
/// debuggers can stop, does nothing.
fn last_call(
    range: Range<u64>,
    code: &mut impl FnMut(Range<u64>) -> Option<Vec<u8>>,
) -> Option<u64> {
    let bytes = code(range.clone())?;
    let decoder = Decoder::with_ip(64, &bytes, range.start, DecoderOptions::NONE);
    let calls = decoder
        .into_iter()
        .filter(|code| code.mnemonic() == Mnemonic::Call);
    let calls: Vec<Instruction> = calls.collect();
    let last = calls.into_iter().rev().find(|call| {
        let target = call.near_branch64();
        let direct = call.op0_kind() == OpKind::NearBranch64;
        !(direct && does_nothing(target, code))
    })?;
    last.ip().checked_add(1)
}

/// Returns whether the function at `address` returns at once.
fn does_nothing(address: u64, code: &mut impl FnMut(Range<u64>) -> Option<Vec<u8>>) -> bool {
    const RETURNS: [&[u8]; 2] = [&[0xc3], &[0xf3, 0x0f, 0x1e, 0xfa, 0xc3]];
    RETURNS.iter().any(|returns| {
        let end = address.saturating_add(returns.len() as u64);
        code(address..end).is_some_and(|found| found == *returns)
    })
}
