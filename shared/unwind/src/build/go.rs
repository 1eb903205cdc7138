//! Stack switches of Go's runtime. The call frame information of its assembly does not describe
//! them.

use std::collections::BTreeSet;
use std::ops::Range;

use elf::{Elf, Source};

use crate::arch::{SIGNAL_CONTEXT, analyse};
use crate::ranges::Ready;
use crate::rule::{Rule, cfa};

/// Maximum size of a function that is considered, in bytes. The functions in this file are smaller.
const SIZE_LIMIT: u64 = 4096;

/// Stack switch of a function of src/runtime/asm_amd64.s, sys_linux_amd64.s or time_linux_amd64.s.
enum Switch {
    /// The function continues or starts at the bottom of the stack of the scheduler, g0.
    Bottom,
    /// The function calls the vDSO on g0's stack, and keeps its own frame on the other stack.
    Call,
    /// The function ends a signal handler.
    SignalReturn,
}

fn switch(name: &[u8]) -> Option<Switch> {
    match name.strip_suffix(b".abi0").unwrap_or(name) {
        b"runtime.mcall"
        | b"runtime.morestack"
        | b"runtime.systemstack"
        | b"runtime.asmcgocall"
        | b"runtime.mstart" => Some(Switch::Bottom),
        b"runtime.nanotime1" | b"runtime.walltime" | b"time.now" => Some(Switch::Call),
        b"runtime.sigreturn" | b"runtime.sigreturn__sigaction" => Some(Switch::SignalReturn),
        _ => None,
    }
}

/// Returns rows for the functions that switch stacks. These rows take precedence over all other
/// descriptions of the functions. Returns none for a program that Go did not build.
pub(crate) fn switches<S: Source>(elf: &Elf<S>) -> Vec<Ready> {
    let mut found = Vec::new();
    if !elf.is_go() {
        return found;
    }
    elf.for_each_function(|name, range| {
        let size = range.end - range.start;
        let Some(switch) = switch(name).filter(|_| (1..=SIZE_LIMIT).contains(&size)) else {
            return;
        };
        // A frame may return to the first instruction, which has no call before it. The unwind then
        // looks up the byte before.
        let early = range.start.saturating_sub(1);
        let (range, rows) = match switch {
            Switch::Bottom => (early..range.end, vec![(early, Rule::ROOT)]),
            Switch::SignalReturn => {
                let frame = Rule::at(cfa::SIGNAL_FRAME, SIGNAL_CONTEXT);
                (early..range.end, vec![(early, frame)])
            }
            Switch::Call => {
                let Some(code) = code(elf, &range) else {
                    return;
                };
                let known = std::slice::from_ref(&range);
                let rows = analyse(&code, range.start, known, &[], &BTreeSet::new());
                (range, rows.into_iter().map(on_either_stack).collect())
            }
        };
        found.push(Ready { range, rows });
    });
    found
}

/// Returns a row that allows the CFA to be on another stack. The analysis of code finds the CFA
/// from the frame pointer while a function is on the other stack.
fn on_either_stack((address, rule): (u64, Rule)) -> (u64, Rule) {
    let cfa = match rule.cfa {
        cfa::FRAME_POINTER => cfa::SWITCHED_STACK,
        other => other,
    };
    (address, Rule { cfa, ..rule })
}

fn code<S: Source>(elf: &Elf<S>, range: &Range<u64>) -> Option<Vec<u8>> {
    let section = elf.sections().iter().find(|section| {
        let within = section.range();
        within.is_some_and(|within| within.start <= range.start && range.end <= within.end)
    })?;
    let offset = section.offset.checked_add(range.start - section.address)?;
    elf.bytes("code", offset, range.end - range.start).ok()
}
