//! Roots of the stacks of coroutines.
//!
//! A coroutine has its own stack, or a part of its thread's stack. The memory above its first
//! function belongs to another stack, or to none.

use std::ops::Range;

use elf::{Elf, Source};

use crate::arch::find_taken;
use crate::ranges::Ready;
use crate::rule::Rule;

/// Maximum size of a function that is considered, in bytes. The functions named here are smaller.
const SIZE_LIMIT: u64 = 64 << 10;

/// A function that begins the stack of a coroutine.
enum Beginning {
    /// It lays out the stack, and the first function returns to the addresses of code that it
    /// takes: `makecontext` of glibc, `make_fcontext` of boost.context.
    Maker,
    /// It is the first function on the stack.
    First,
}

fn beginning(name: &[u8]) -> Option<Beginning> {
    match name {
        b"makecontext" | b"make_fcontext" => Some(Beginning::Maker),
        // greenlet::UserGreenlet::inner_bootstrap() of greenlet 2 and later. It calls the
        // greenlet's function. Its own caller's frame belongs to the parent, which goes on
        // running meanwhile.
        _ if name.starts_with(b"_ZN8greenlet12UserGreenlet15inner_bootstrapE") => {
            Some(Beginning::First)
        }
        _ => None,
    }
}

/// Returns rows for the functions that begin stacks. They take precedence over all other
/// descriptions of these functions.
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
                    // The first function returns to `target` without a call before it, so the
                    // unwind looks up the byte before.
                    add(target.saturating_sub(1)..target);
                }
            }
        }
    });
    found
}
