mod flow;
mod frame;
mod functions;
mod return_address;
mod returns;

use std::collections::BTreeSet;
use std::ops::Range;

use super::find_called;
use crate::rule::{Rule, cfa, frame_pointer};

const BASE: u64 = 0x40_1000;

/// Returns the rows of code to which no other code has calls.
pub(super) fn analyse(
    code: &[u8],
    address: u64,
    functions: &[Range<u64>],
    parts: &[Range<u64>],
) -> Vec<(u64, Rule)> {
    let mut called = BTreeSet::new();
    find_called(code, address, &mut called);
    super::analyse(code, address, functions, parts, &called)
}

/// Returns the rows of one function, by offset.
fn rows(code: &[u8]) -> Vec<(u64, Rule)> {
    rows_of(code, &[0])
}

/// Returns the rows of functions that begin at these offsets, by offset.
fn rows_of(code: &[u8], starts: &[u64]) -> Vec<(u64, Rule)> {
    let functions: Vec<_> = starts
        .iter()
        .map(|&start| BASE + start..BASE + start)
        .collect();
    let rows = analyse(code, BASE, &functions, &[]);
    rows.into_iter()
        .map(|(address, rule)| (address - BASE, rule))
        .collect()
}

fn stack(offset: i32) -> Rule {
    Rule::at(cfa::STACK_POINTER, offset)
}

/// Returns `rule` with the caller's frame pointer saved at the CFA + `offset`.
fn saved(rule: Rule, offset: i16) -> Rule {
    Rule {
        frame_pointer: frame_pointer::AT_CFA,
        frame_pointer_offset: offset,
        ..rule
    }
}

fn lost(rule: Rule) -> Rule {
    Rule {
        frame_pointer: frame_pointer::LOST,
        ..rule
    }
}

#[test]
fn hostile_input_is_survived() {
    // The code consists of pseudorandom bytes.
    let mut state = 1_u64;
    let mut code = vec![0; 1 << 16];
    for byte in &mut code {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        *byte = (state >> 56) as u8;
    }
    let every: Vec<_> = (0..code.len() as u64)
        .map(|start| start..start + 100)
        .collect();
    for address in [0, u64::MAX - 1000] {
        let rows = analyse(&code, address, &every, &every[..1000]);
        assert!(rows.is_sorted_by_key(|row| row.0));
        analyse(&code, address, &[], &[]);
    }
    let backwards = Range { start: 5, end: 2 };
    assert_eq!(analyse(&[], 0, &[0..1, backwards.clone()], &[]), []);
    let last = (9, Rule::NONE);
    assert_eq!(
        analyse(&[0xc3; 9], 0, &[backwards, 6..7], &[]).last(),
        Some(&last)
    );
    // The first code has a table jump before many blocks that do not fit. The second code loops
    // over calls without end.
    let mut blocks = b"\x53\xff\xe0".to_vec();
    blocks.extend(b"\x50\x75\x01\xc3".repeat(10_000));
    rows(&blocks);
    rows(&b"\x50\xe8\x00\x00\x00\x00\x75\xf8".repeat(10_000));
}
