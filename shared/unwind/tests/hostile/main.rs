//! Builds tables of tampered images. They must not stop the reader, and its time and memory must
//! stay in proportion to their size.
#![allow(clippy::unwrap_used)]

mod check;
#[path = "../common/mod.rs"]
mod common;
mod seeds;

use std::{env, fs, ops::Range, path::Path};

use check::check;
use seeds::seeds;

#[test]
fn tampered_images_do_no_harm() {
    tamper::tamper("images", &seeds(), check);
}

#[test]
fn work_is_bounded_by_the_size_of_the_file() {
    const SIZE: usize = 2 << 20;
    let text = TEXT..TEXT + u64::from(u32::MAX);
    let long = common(&[0x0e; 900]);
    let mut shared = long.clone();
    let mut overlapping = common(&[]);
    let mut nested = common(&[]);
    while shared.len() < SIZE {
        // All descriptions refer to the same common entry, which has the maximum size.
        let at = shared.len();
        let start = text.start + at as u64 * 64;
        shared.extend(description(at, start..start + 64, &[]));
        // In `overlapping`, all descriptions are for the same code. In `nested`, each description
        // is for one byte less.
        let at = overlapping.len();
        overlapping.extend(description(at, text.clone(), &[0x41, 0x0e, 16]));
        let at = nested.len();
        let start = text.start + at as u64;
        nested.extend(description(at, start..text.end, &[0x44, 0x0e, 16]));
    }
    // Every few bytes of instructions make a row.
    let mut rows = common(&[]);
    rows.extend(description(
        rows.len(),
        text,
        &[0x42, 0x0e, 16, 0x42, 0x0e, 8].repeat(SIZE / 6),
    ));
    for eh_frame in [shared, overlapping, nested, rows] {
        check(&image(&eh_frame));
    }
}

const TEXT: u64 = 0x40_0000;

/// Returns a common entry without augmentation, with factors 1 and -8 and the usual columns.
fn common(instructions: &[u8]) -> Vec<u8> {
    let header = [0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1];
    entry(&[&header, instructions])
}

/// Returns a description at offset `at` whose common entry is at offset 0.
fn description(at: usize, code: Range<u64>, instructions: &[u8]) -> Vec<u8> {
    let back = (at as u32 + 4).to_le_bytes();
    let [start, size] = [code.start, code.end - code.start].map(u64::to_le_bytes);
    entry(&[&back, &start, &size, instructions])
}

fn entry(parts: &[&[u8]]) -> Vec<u8> {
    let rest = parts.concat();
    [&(rest.len() as u32).to_le_bytes(), &rest[..]].concat()
}

/// Returns an image with a program header for 4 GiB of code. The program header for `.eh_frame_hdr`
/// leads to `.eh_frame`.
fn image(eh_frame: &[u8]) -> Vec<u8> {
    const HEADERS: u64 = 64 + 3 * 56;
    const FRAME: u64 = 0x10_0000;
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(18, 0);
    bytes.extend(62_u16.to_le_bytes());
    bytes.resize(32, 0);
    bytes.extend(64_u64.to_le_bytes());
    bytes.resize(54, 0);
    bytes.extend([56_u16, 3].map(u16::to_le_bytes).concat());
    bytes.resize(64, 0);
    let size = eh_frame.len() as u64 + 12;
    for (kind, flags, offset, address, size) in [
        (1_u32, 5_u32, 0, TEXT, u64::from(u32::MAX)),
        (1, 4, HEADERS, FRAME, size),
        (0x6474_e550, 4, HEADERS, FRAME, 12),
    ] {
        bytes.extend([kind, flags].map(u32::to_le_bytes).concat());
        bytes.extend(
            [offset, address, address, size, size, 8]
                .map(u64::to_le_bytes)
                .concat(),
        );
    }
    // The pointer to .eh_frame is a signed word, relative to its own address. There is no search
    // table.
    bytes.extend([1, 0x1b, 0xff, 0xff]);
    bytes.extend(8_u32.to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(eh_frame);
    bytes
}

/// The seeds are valid before tests tamper with them. If `SYSTEMSCOPE_FUZZ_SEEDS` names a
/// directory, the test writes the seeds to the fuzz target's folder in it.
#[test]
fn seeds_for_the_fuzz_target() {
    let directory = env::var_os("SYSTEMSCOPE_FUZZ_SEEDS");
    for (index, seed) in seeds().iter().enumerate() {
        let built = unwind::build(seed).unwrap();
        assert!(!built.table.rows.is_empty(), "seed {index}");
        if let Some(directory) = &directory {
            let folder = Path::new(directory).join("tables");
            fs::write(folder.join(format!("seed-{index}")), seed).unwrap();
        }
    }
}
