//! Finds the functions in code.

use std::collections::BTreeSet;
use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};

/// Returns the offsets of `functions` in `code`, ascending and without overlaps.
pub(super) fn within<'a>(
    code: &[u8],
    address: u64,
    functions: impl Iterator<Item = &'a Range<u64>>,
) -> Vec<Range<usize>> {
    let offset = |at: u64| usize::try_from(at.checked_sub(address)?).ok();
    let mut found: Vec<Range<usize>> = functions
        .filter_map(|function| {
            let start = offset(function.start).filter(|&start| start < code.len())?;
            Some(start..offset(function.end).unwrap_or(start))
        })
        .collect();
    found.sort_by_key(|function| (function.start, usize::MAX - function.end));
    found.dedup_by_key(|function| function.start);
    let mut limit = code.len();
    for function in found.iter_mut().rev() {
        let known = function.end > function.start;
        function.end = if known {
            function.end.min(limit)
        } else {
            limit
        };
        limit = function.start;
    }
    found
}

/// Returns the addresses that instructions in `code` load (`lea`).
pub(crate) fn find_taken(code: &[u8], address: u64) -> Vec<u64> {
    let instructions = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let taken = instructions.into_iter().filter_map(|one| taken(&one));
    taken.collect()
}

/// Returns the address that an instruction loads, if it is a `lea` relative to the instruction
/// pointer.
fn taken(instruction: &Instruction) -> Option<u64> {
    let takes = instruction.mnemonic() == Mnemonic::Lea && instruction.is_ip_rel_memory_operand();
    takes.then(|| instruction.ip_rel_memory_address())
}

/// Adds to `called` the addresses that instructions in `code` call or load.
pub(crate) fn find_called(code: &[u8], address: u64, called: &mut BTreeSet<u64>) {
    for instruction in &mut Decoder::with_ip(64, code, address, DecoderOptions::NONE) {
        let target = match instruction.mnemonic() {
            Mnemonic::Call if instruction.op0_kind() == OpKind::NearBranch64 => {
                Some(instruction.near_branch64())
            }
            _ => taken(&instruction),
        };
        // Code calls the next instruction only to read its own address.
        called.extend(target.filter(|&target| target != instruction.next_ip()));
    }
}

/// Returns the address of the first instruction that is not padding.
pub(super) fn first_instruction(code: &[u8], address: u64) -> Option<u64> {
    let instructions = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let is_padding = |mnemonic| matches!(mnemonic, Mnemonic::Nop | Mnemonic::Int3);
    let mut rest = instructions.into_iter();
    rest.find(|instruction| !is_padding(instruction.mnemonic()))
        .map(|instruction| instruction.ip())
}
