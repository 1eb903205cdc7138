//! Rules from machine code, for functions that no call-frame information
//! describes.
//!
//! A function's instructions are followed from its entry, where the calling
//! convention says what the frame is, keeping track of the stack pointer and of
//! what becomes of the frame pointer. Where that is not clear there is no rule.

mod flow;
mod functions;
mod state;

#[cfg(test)]
mod accuracy;
#[cfg(test)]
mod tests;

use std::ops::Range;

use iced_x86::Mnemonic;

use crate::Rule;
use flow::Flow;
use functions::{find, within};

/// Rows (address, rule) for code that no call-frame information describes,
/// ascending; each holds up to the next.
///
/// `code` is what lies at `address`. `functions` are the addresses of the
/// functions in it as far as they are known; an empty one ends where the next
/// begins, and if there are none they are found by the calls to them. `parts`
/// are pieces that compilers move out of functions (`name.cold`), which are
/// entered by jumps.
pub(crate) fn analyse(
    code: &[u8],
    address: u64,
    functions: &[Range<u64>],
    parts: &[Range<u64>],
) -> Vec<(u64, Rule)> {
    let found = if functions.is_empty() {
        find(code, address)
    } else {
        Vec::new()
    };
    let ranges = within(code, address, functions.iter().chain(&found).chain(parts));
    let parts = within(code, address, parts.iter());
    let parts = parts.into_iter().map(|part| part.start).collect();
    let flow = Flow::new(code, address, &ranges, parts);

    let mut rows: Vec<(u64, Rule)> = Vec::new();
    let mut push = |offset: usize, rule| {
        if rows.last().map_or(Rule::NONE, |row| row.1) != rule {
            rows.push((address.saturating_add(offset as u64), rule));
        }
    };
    let mut end = 0;
    for offset in 0..code.len() {
        let Some(node) = flow.node(offset) else {
            continue;
        };
        if offset > end && !is_padding(&flow, end..offset) {
            push(end, Rule::NONE);
        }
        push(offset, flow.state(offset).rule());
        end = end.max(offset + usize::from(node.length));
    }
    push(end, Rule::NONE);
    rows
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
