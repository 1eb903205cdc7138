//! Makes rules from machine code, for functions without call frame information.
//!
//! The analysis follows the instructions of a function from its entry, where the calling convention
//! defines the frame. It tracks the stack pointer, and the value in the frame pointer's register.
//! Code in which these are unknown gets no rule.

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
use returns::{InstructionRule, trace_returns};

/// Returns rows (address, rule) for code without call frame information, ascending. A row is valid
/// up to the next row.
///
/// `code` begins at `address`. `functions` are the addresses of its known functions. A function
/// with an empty range ends where the next function begins. `called` are the addresses that
/// [`find_called`] finds. `parts` are pieces that compilers move out of functions (`name.cold`), to
/// which functions jump.
///
/// The analysis follows a function from its beginning if the beginning is known. In other code, the
/// rule comes from the return ahead, which is more reliable there.
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
        let reached = flow.node(offset).map(|node| InstructionRule {
            length: node.length,
            rule: flow.state(offset).rule(),
        });
        let from_entry = reached.filter(|found| found.rule != Rule::NONE);
        let is_sure = is_in(&sure, offset as u64) || flow.state(offset).has_no_return();
        let chosen = match (from_entry, ahead) {
            (Some(_), Some(_)) if is_sure => from_entry,
            (_, Some(_)) => ahead,
            (_, None) => reached,
        };
        let Some(chosen) = chosen else { continue };
        if offset > end && !is_padding(&flow, end..offset) {
            push(end, Rule::NONE);
        }
        push(offset, chosen.rule);
        end = end.max(offset + usize::from(chosen.length));
    }
    push(end, Rule::NONE);
    rows
}

/// Returns whether `offset` is inside one of `ranges`, which are ascending and do not overlap.
fn is_in(ranges: &[Range<usize>], offset: u64) -> bool {
    let index = ranges.partition_point(|range| range.start as u64 <= offset);
    let range = index.checked_sub(1).and_then(|index| ranges.get(index));
    range.is_some_and(|range| offset < range.end as u64)
}

/// Returns whether `range` contains only padding inside a function. No thread runs padding, so it
/// needs no row.
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
