//! Roots of the stacks of coroutines.
//!
//! A coroutine has a stack of its own, or a part of its thread's. What lies above its first
//! function is another's, or nothing.

use std::ops::Range;

use elf::{Elf, Source};

use crate::arch::find_taken;
use crate::ranges::Ready;
use crate::rule::Rule;

/// Code that is larger is none of the functions here.
const SIZE_LIMIT: u64 = 64 << 10;

/// A function that has to do with the beginning of a coroutine's stack.
enum Beginning {
    /// It lays out the stack, and the addresses of code that it takes are what the first
    /// function returns to: `makecontext` of glibc, `make_fcontext` of boost.context.
    Maker,
    /// It is the first function.
    First,
}

fn beginning(name: &[u8]) -> Option<Beginning> {
    match name {
        b"makecontext" | b"make_fcontext" => Some(Beginning::Maker),
        // greenlet::UserGreenlet::inner_bootstrap() of greenlet 2 and later. It calls what
        // the greenlet runs; its own caller's frame is the parent's, which goes on meanwhile.
        _ if name.starts_with(b"_ZN8greenlet12UserGreenlet15inner_bootstrapE") => {
            Some(Beginning::First)
        }
        _ => None,
    }
}

/// Rows for these, to go before whatever else is said of them.
pub(crate) fn beginnings<S: Source>(elf: &Elf<S>) -> Vec<Ready> {
    let mut found = Vec::new();
    let mut add = |range: Range<u64>| {
        let rows = vec![(range.start, Rule::ROOT)];
        found.push(Ready { range, rows });
    };
    elf.for_each_function(|name, range| {
        let size = range.end - range.start;
        let Some(beginning) = beginning(name).filter(|_| (1..=SIZE_LIMIT).contains(&size)) else {
            return;
        };
        match beginning {
            Beginning::First => add(range),
            Beginning::Maker => {
                let offset = elf.segments().offset(range.start, size);
                let code = offset.and_then(|offset| elf.bytes("code", offset, size).ok());
                for target in find_taken(&code.unwrap_or_default(), range.start) {
                    // Returned to without having called, it is looked up one byte before.
                    add(target.saturating_sub(1)..target);
                }
            }
        }
    });
    found
}
