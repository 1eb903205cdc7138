//! Where functions are.

use std::collections::BTreeSet;
use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, Mnemonic, OpKind};

/// The functions' offsets in `code`, ascending and apart from each other.
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

/// The functions that calls go to or whose addresses are taken, and the one
/// that `code` begins with. Their ends are not known.
pub(super) fn find(code: &[u8], address: u64) -> Vec<Range<u64>> {
    let mut starts = BTreeSet::new();
    let mut first = None;
    for instruction in &mut Decoder::with_ip(64, code, address, DecoderOptions::NONE) {
        let target = match instruction.mnemonic() {
            Mnemonic::Nop | Mnemonic::Int3 => continue,
            Mnemonic::Call if instruction.op0_kind() == OpKind::NearBranch64 => {
                Some(instruction.near_branch64())
            }
            Mnemonic::Lea if instruction.is_ip_rel_memory_operand() => {
                Some(instruction.ip_rel_memory_address())
            }
            _ => None,
        };
        first.get_or_insert(instruction.ip());
        // A call to what follows only reads its own address.
        starts.extend(target.filter(|&target| target != instruction.next_ip()));
    }
    starts.extend(first);
    starts.into_iter().map(|start| start..start).collect()
}
