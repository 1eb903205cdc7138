//! Roots of the stacks of coroutines.
//!
//! A coroutine has its own stack, or a part of its thread's stack. The memory above its first
//! function belongs to another stack, or to no stack.

use std::ops::Range;

use elf::{Elf, Source};

use crate::arch::find_taken;
use crate::ranges::Ready;
use crate::rule::Rule;

/// Maximum size of a function that is considered, in bytes. The functions in this file are smaller.
const SIZE_LIMIT: u64 = 64 << 10;

/// Role of a function at the beginning of a coroutine's stack.
enum Beginning {
    /// The function lays out the stack: `makecontext` of glibc, `make_fcontext` of boost.context.
    /// The first function on the stack returns to an address of code that this function loads.
    Maker,
    /// The function is the first function on the stack.
    First,
}

fn beginning(name: &[u8]) -> Option<Beginning> {
    match name {
        b"makecontext" | b"make_fcontext" => Some(Beginning::Maker),
        // greenlet::UserGreenlet::inner_bootstrap() of greenlet 2 and later, which calls the
        // greenlet's function. The frame of its own caller belongs to the parent, which continues
        // to run.
        _ if name.starts_with(b"_ZN8greenlet12UserGreenlet15inner_bootstrapE") => {
            Some(Beginning::First)
        }
        _ => None,
    }
}

/// Returns rows for the functions that begin stacks. These rows take precedence over all other
/// descriptions of the functions.
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
                    // The first function returns to `target`, and no call is before `target`. The
                    // unwind looks up the byte before it.
                    add(target.saturating_sub(1)..target);
                }
            }
        }
    });
    found
}
