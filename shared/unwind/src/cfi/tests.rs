//! Sections written by hand: what no assembler writes.

use super::*;
use crate::{cfa, frame_pointer};

/// Without augmentation, factors of 1 and -8, and the return address in column 16;
/// the call's frame.
const COMMON: [u8; 11] = [1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1, 0];
/// DW_CFA_advance_loc by 0, by 4.
const STAY: [u8; 2] = [0x02, 0];
const FOUR_ON: u8 = 0x44;

/// An entry of the 32-bit format.
fn entry(id: u32, body: &[u8]) -> Vec<u8> {
    let length = 4 + body.len() as u32;
    [&length.to_le_bytes(), &id.to_le_bytes(), body].concat()
}

/// An entry of the 64-bit format.
fn long_entry(id: u64, body: &[u8]) -> Vec<u8> {
    let length = 8 + body.len() as u64;
    let ids = [length.to_le_bytes(), id.to_le_bytes()].concat();
    [&[0xff; 4], &*ids, body].concat()
}

/// What a description says of 16 addresses from 0x1000 on.
fn described(instructions: &[u8]) -> Vec<u8> {
    let range = [0x1000_u64, 16].map(u64::to_le_bytes).concat();
    [&range, instructions].concat()
}

/// `.eh_frame` of a common entry, what may follow it, and a description.
fn eh_frame(common: &[u8], between: &[u8], instructions: &[u8]) -> Vec<u8> {
    let mut section = [&entry(0, common), between].concat();
    let back = section.len() as u32 + 4;
    section.extend(entry(back, &described(instructions)));
    section
}

fn spans_of_eh_frame(section: &[u8]) -> (usize, u64, u64) {
    let mut frames = Frames::eh_frame(section, 0);
    let spans = frames.spans().map_or(0, |spans| spans.len());
    (spans, frames.found, frames.unreadable)
}

fn spans_of_debug_frame(section: &[u8]) -> (usize, u64, u64) {
    let mut frames = Frames::debug_frame(section);
    let spans = frames.spans().map_or(0, |spans| spans.len());
    (spans, frames.found, frames.unreadable)
}

/// The rows of the only description, of which `length` addresses are asked for.
fn rules(instructions: &[u8], length: u64) -> Vec<(u64, Rule)> {
    let section = eh_frame(&COMMON, &[], instructions);
    let mut frames = Frames::eh_frame(&section, 0);
    let spans = frames.spans().unwrap_or_default();
    let [span] = *spans else {
        unreachable!("one description: {spans:?}")
    };
    let From::EhFrame(offset) = span.from else {
        unreachable!("of .eh_frame: {span:?}")
    };
    let end = span.start + length;
    let mut rows = Vec::new();
    let read = frames.rows(&Span { end, ..span }, offset, &mut |address, rule| {
        rows.push((address, rule));
        Ok(())
    });
    assert!(read.is_ok());
    rows
}

/// The same, of each the offset of its CFA.
fn rows(instructions: &[u8], length: u64) -> Vec<(u64, i32)> {
    let rules = rules(instructions, length).into_iter();
    rules
        .map(|(address, rule)| (address, rule.cfa_offset))
        .collect()
}

#[test]
fn an_empty_entry_ends_eh_frame_and_nothing_else() {
    let end = [0; 4];
    assert_eq!(spans_of_eh_frame(&eh_frame(&COMMON, &[], &[])), (1, 1, 0));
    assert_eq!(spans_of_eh_frame(&eh_frame(&COMMON, &end, &[])), (0, 0, 0));
    let common = entry(u32::MAX, &COMMON);
    let description = entry(0, &described(&[]));
    let section = [&*common, &end, &description].concat();
    assert_eq!(spans_of_debug_frame(&section), (1, 1, 0));
}

#[test]
fn both_formats_of_debug_frame() {
    let short = [entry(u32::MAX, &COMMON), entry(0, &described(&[]))].concat();
    assert_eq!(spans_of_debug_frame(&short), (1, 1, 0));
    let long = [
        long_entry(u64::MAX, &COMMON),
        long_entry(0, &described(&[])),
    ]
    .concat();
    assert_eq!(spans_of_debug_frame(&long), (1, 1, 0));
}

#[test]
fn rows_end_where_others_begin() {
    // DW_CFA_def_cfa_offset
    let moves = [FOUR_ON, 0x0e, 16, FOUR_ON, 0x0e, 24];
    assert_eq!(rows(&moves, 16), [(0x1000, 8), (0x1004, 16), (0x1008, 24)]);
    assert_eq!(rows(&moves, 8), [(0x1000, 8), (0x1004, 16)]);
    assert_eq!(rows(&moves, 6), [(0x1000, 8), (0x1004, 16)]);
}

#[test]
fn what_holds_for_no_address_is_no_row() {
    let moves = [&[0x0e, 16], &STAY[..], &[0x0e, 24, FOUR_ON, 0x0e, 32]].concat();
    assert_eq!(rows(&moves, 16), [(0x1000, 24), (0x1004, 32)]);
}

#[test]
fn registers_are_saved_below_the_frames_address_or_above() {
    // DW_CFA_offset_extended_sf: rbp at 2 times the factor, and at -2 times.
    for (factored, offset) in [(2, -16), (0x7e, 16)] {
        let saved = Rule {
            frame_pointer: frame_pointer::AT_CFA,
            frame_pointer_offset: offset,
            ..Rule::at(cfa::STACK_POINTER, 8)
        };
        assert_eq!(rules(&[0x11, 6, factored], 16), [(0x1000, saved)]);
    }
}

#[test]
fn common_entries_of_other_processors_or_without_end_are_not_used() {
    let with = |common: &[u8]| spans_of_eh_frame(&eh_frame(common, &[], &[]));
    let mut other = COMMON;
    other[4] = 30;
    assert_eq!(with(&other), (0, 1, 1));
    // The field that says it is common counts.
    let padded = |length: usize| [&COMMON[..], &vec![0; length - 4 - COMMON.len()]].concat();
    assert_eq!(with(&padded(COMMON_SIZE_LIMIT)), (1, 1, 0));
    assert_eq!(with(&padded(COMMON_SIZE_LIMIT + 1)), (0, 1, 1));
    assert_eq!(with(&padded(COMMON_SIZE_LIMIT + 2)), (0, 1, 1));
}
