//! Tests with sections written by hand. Their entries are such as no assembler writes.

use super::*;

/// Common entry without augmentation. Its factors are 1 and -8, and the return address is in column
/// 16. Its instructions describe the frame at the entry of a function.
const COMMON: [u8; 11] = [1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1, 0];

/// Returns an entry of the 32-bit format.
fn entry(id: u32, body: &[u8]) -> Vec<u8> {
    let length = 4 + body.len() as u32;
    [&length.to_le_bytes(), &id.to_le_bytes(), body].concat()
}

/// Returns an entry of the 64-bit format.
fn long_entry(id: u64, body: &[u8]) -> Vec<u8> {
    let length = 8 + body.len() as u64;
    let ids = [length.to_le_bytes(), id.to_le_bytes()].concat();
    [&[0xff; 4], &*ids, body].concat()
}

/// Returns the body of a description of the 16 addresses from 0x1000 on.
fn described(instructions: &[u8]) -> Vec<u8> {
    let range = [0x1000_u64, 16].map(u64::to_le_bytes).concat();
    [&range, instructions].concat()
}

/// Returns `.eh_frame` with a common entry, the bytes `between`, and a description.
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
fn common_entries_of_other_processors_or_without_end_are_not_used() {
    let with = |common: &[u8]| spans_of_eh_frame(&eh_frame(common, &[], &[]));
    let mut other = COMMON;
    other[4] = 30;
    assert_eq!(with(&other), (0, 1, 1));
    // The size includes the field that marks an entry as common.
    let padded = |length: usize| [&COMMON[..], &vec![0; length - 4 - COMMON.len()]].concat();
    assert_eq!(with(&padded(COMMON_SIZE_LIMIT)), (1, 1, 0));
    assert_eq!(with(&padded(COMMON_SIZE_LIMIT + 1)), (0, 1, 1));
    assert_eq!(with(&padded(COMMON_SIZE_LIMIT + 2)), (0, 1, 1));
}
