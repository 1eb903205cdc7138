//! Where Go's runtime leaves one stack for another, which the frame
//! information of its assembly does not say.

use std::collections::BTreeSet;
use std::ops::Range;

use elf::{Elf, Source};

use crate::arch::{SIGNAL_CONTEXT, analyse};
use crate::ranges::Ready;
use crate::rule::{Rule, cfa};

/// Code that is larger is none of the functions here.
const SIZE_LIMIT: u64 = 4096;

/// What a function of src/runtime/asm_amd64.s, sys_linux_amd64.s or
/// time_linux_amd64.s does to the stack.
enum Switch {
    /// It goes on at the bottom of the scheduler's stack, g0's, or is there.
    Bottom,
    /// It calls the vDSO on g0's stack, and has its own frame on the other.
    Call,
    /// It ends a signal handler.
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

/// Rows for such functions, to go before whatever else is said of them; none
/// in a program that was not built by Go.
pub(crate) fn switches<S: Source>(elf: &Elf<S>) -> Vec<Ready> {
    let mut found = Vec::new();
    if elf.section(".gopclntab").is_none() {
        return found;
    }
    elf.for_each_function(|name, range| {
        let size = range.end - range.start;
        let Some(switch) = switch(name).filter(|_| (1..=SIZE_LIMIT).contains(&size)) else {
            return;
        };
        // Returned to without having been called, its first instruction is
        // looked up one byte before it.
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

/// By its code, a function that switches stacks is described by its frame
/// pointer for as long as it is on the other.
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
