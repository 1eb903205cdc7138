//! Rules from machine code, for functions that no call-frame information
//! describes.
//!
//! A function's instructions are followed from its entry, where the calling
//! convention says what the frame is, keeping track of the stack pointer and of
//! what becomes of the frame pointer. Where that is not clear there is no rule.

mod flow;
mod functions;
mod returns;
mod state;

#[cfg(test)]
mod accuracy;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use iced_x86::Mnemonic;

use crate::rule::Rule;
use flow::Flow;
pub(crate) use functions::{find_called, find_taken};
use functions::{first_instruction, within};
use returns::{Told, trace_returns};

/// Rows (address, rule) for code that no call-frame information describes,
/// ascending; each holds up to the next.
///
/// `code` is what lies at `address`. `functions` are the addresses of the
/// functions in it as far as they are known; an empty one ends where the next
/// begins. `called` are addresses that are called, as [`find_called`] finds them. `parts` are pieces that compilers
/// move out of functions (`name.cold`), which are entered by jumps.
///
/// A function whose beginning is known is followed from there. Elsewhere the return ahead
/// is the better witness.
pub(crate) fn analyse(
    code: &[u8],
    address: u64,
    functions: &[Range<u64>],
    parts: &[Range<u64>],
    called: &BTreeSet<u64>,
) -> Vec<(u64, Rule)> {
    let known = || functions.iter().chain(parts);
    let sized = within(code, address, known().filter(|range| !range.is_empty()));
    let first = first_instruction(code, address);
    let found: Vec<_> = called
        .range(address..)
        .chain(&first)
        .filter(|start| !is_in(&sized, start.wrapping_sub(address)))
        .map(|&start| start..start)
        .collect();
    let ranges = within(code, address, known().chain(&found));
    let starts: HashSet<u64> = known().map(|function| function.start).collect();
    let mut sure = ranges.clone();
    sure.retain(|range| starts.contains(&address.wrapping_add(range.start as u64)));
    let parts = within(code, address, parts.iter());
    let parts = parts.into_iter().map(|part| part.start).collect();
    let flow = Flow::new(code, address, &ranges, parts);
    let returns = trace_returns(code, address);

    let mut rows: Vec<(u64, Rule)> = Vec::new();
    let mut push = |offset: usize, rule| {
        if rows.last().map_or(Rule::NONE, |row| row.1) != rule {
            rows.push((address.saturating_add(offset as u64), rule));
        }
    };
    let mut end = 0;
    for (offset, ahead) in returns.into_iter().enumerate() {
        let reached = flow.node(offset).map(|node| Told {
            length: node.length,
            rule: flow.state(offset).rule(),
        });
        let from_entry = reached.filter(|told| told.rule != Rule::NONE);
        let is_sure = is_in(&sure, offset as u64) || flow.state(offset).has_no_return();
        let told = match (from_entry, ahead) {
            (Some(_), Some(_)) if is_sure => from_entry,
            (_, Some(_)) => ahead,
            (_, None) => reached,
        };
        let Some(told) = told else { continue };
        if offset > end && !is_padding(&flow, end..offset) {
            push(end, Rule::NONE);
        }
        push(offset, told.rule);
        end = end.max(offset + usize::from(told.length));
    }
    push(end, Rule::NONE);
    rows
}

/// Whether `offset` is in one of the `ranges`, which are ascending and apart.
fn is_in(ranges: &[Range<usize>], offset: u64) -> bool {
    let index = ranges.partition_point(|range| range.start as u64 <= offset);
    let range = index.checked_sub(1).and_then(|index| ranges.get(index));
    range.is_some_and(|range| offset < range.end as u64)
}

/// Whether there is nothing but padding within a function. That is never run,
/// and a row less without a rule of its own.
fn is_padding(flow: &Flow<'_>, range: Range<usize>) -> bool {
    let function = flow.function(range.start);
    let mut offset = range.start;
    while offset < range.end {
        match flow.decode(offset) {
            Some(nop) if nop.mnemonic() == Mnemonic::Nop => offset += nop.len(),
            _ => return false,
        }
    }
    function.is_some() && function == flow.function(range.end)
}
