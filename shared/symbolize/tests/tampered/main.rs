//! Reads tampered ELF files and perf maps. They must not stop the readers, and time and memory must
//! stay in proportion to their size.
#![allow(clippy::unwrap_used, clippy::panic)]

mod check;
#[path = "../common/mod.rs"]
mod common;
mod seeds;

use std::path::Path;
use std::{env, fs};

use symbolize::readers;

#[global_allocator]
static ALLOCATOR: tamper::Measured = tamper::Measured;

#[test]
fn tampered_programs_do_no_harm() {
    tamper::tamper("programs", &seeds::elf(), check::elf);
}

#[test]
fn tampered_memory_does_no_harm() {
    let seeds = [seeds::elf(), vec![fs::read("/bin/true").unwrap()]].concat();
    tamper::tamper("images in memory", &seeds, check::memory_image);
}

#[test]
fn tampered_debug_information_does_no_harm() {
    tamper::tamper("debug information", &seeds::sources(), check::sources);
}

#[test]
fn tampered_perf_maps_do_no_harm() {
    tamper::tamper("perf maps", &seeds::perf_map(), check::perf_map);
}

/// The seeds are valid before tests tamper with them. If `SYSTEMSCOPE_FUZZ_SEEDS` names a
/// directory, the test writes the seeds to the folders of the fuzz targets in it.
#[test]
fn seeds_for_the_fuzz_targets() {
    let directory = env::var_os("SYSTEMSCOPE_FUZZ_SEEDS");
    for (target, seeds) in [
        ("elf", seeds::elf()),
        ("memory_image", seeds::elf()),
        ("sources", seeds::sources()),
        ("perf_map", seeds::perf_map()),
    ] {
        for (index, seed) in seeds.iter().enumerate() {
            let file = check::file(seed);
            let offsets: Vec<u64> = (0..seed.len() as u64).collect();
            let is_read = match target {
                "elf" => !readers::elf(&file, &offsets).unwrap().is_empty(),
                "memory_image" => readers::memory_image(&file).is_ok(),
                // These are lines of a call, and of the function inlined at the call.
                "sources" => {
                    let found = readers::sources(&file, &offsets).unwrap();
                    let lines = found.values().map(|places| {
                        let lines = places.iter().map(|(_, line)| *line);
                        lines.collect::<Vec<_>>()
                    });
                    let lines: Vec<Vec<u32>> = lines.collect();
                    lines.contains(&vec![8, 3]) && lines.contains(&vec![9, 3])
                }
                _ => !readers::perf_map(&file, &[0x7f00_0000_0000])
                    .unwrap()
                    .is_empty(),
            };
            assert!(is_read, "{target} {index}");
            if let Some(directory) = &directory {
                let folder = Path::new(directory).join(target);
                fs::write(folder.join(format!("seed-{index}")), seed).unwrap();
            }
        }
    }
}

/// Returns a file with the maximum number of symbols, which all cover the same code. All names
/// begin with `name`.
fn symbols_named(name: &[u8]) -> Vec<u8> {
    const SYMBOLS: usize = 1 << 16;
    const HEADERS: usize = 64 + 56 + 3 * 64;
    let table_size = SYMBOLS * 24;
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(32, 0);
    bytes.extend([64_u64, 64 + 56].map(u64::to_le_bytes).concat());
    bytes.extend([0; 4]);
    bytes.extend([64_u16, 56, 1, 64, 3, 0].map(u16::to_le_bytes).concat());
    // The whole file is code, from address 0 on.
    bytes.extend([1_u32, 5].map(u32::to_le_bytes).concat());
    let all = u64::from(u32::MAX);
    bytes.extend([0, 0, 0, all, all, 8].map(u64::to_le_bytes).concat());
    for (kind, offset, size, link) in [
        (0_u32, 0, 0, 0_u32),
        (2, HEADERS, table_size, 2),
        (3, HEADERS + table_size, SYMBOLS + name.len(), 0),
    ] {
        bytes.extend([0, kind].map(u32::to_le_bytes).concat());
        let places = [0, 0, offset as u64, size as u64];
        bytes.extend(places.map(u64::to_le_bytes).concat());
        bytes.extend([link, 0].map(u32::to_le_bytes).concat());
        bytes.extend([8_u64, 24].map(u64::to_le_bytes).concat());
    }
    assert_eq!(bytes.len(), HEADERS);
    for number in 0..SYMBOLS as u64 {
        bytes.extend(0_u32.to_le_bytes());
        bytes.extend([0x12, 0, 1, 0]);
        // Each symbol has a different size, so that no symbol is an alias of another.
        bytes.extend([0x1000, 0x1_0000 + number].map(u64::to_le_bytes).concat());
    }
    bytes.extend(name);
    bytes.push(0);
    bytes
}

#[test]
fn a_name_that_all_symbols_share_is_not_read_for_ever() {
    let bytes = symbols_named(&[b'a'; 4000]);
    let offsets: Vec<u64> = (0x1000..0x1_1000).collect();
    let file = check::file(&bytes);
    let (named, cost) = tamper::cost(|| readers::elf(&file, &offsets));
    check::bounded(cost, bytes.len());
    assert!(!named.unwrap().is_empty());
}

#[test]
fn a_name_that_grows_is_not_kept_for_each_address() {
    let mut name = String::from("_Z1f1AIS_S_E");
    for digit in "0123456789".chars() {
        name += &format!("S_IS{digit}_S{digit}_E");
    }
    let bytes = symbols_named(name.as_bytes());
    let offsets: Vec<u64> = (0x1000..0x1_1000).collect();
    let file = check::file(&bytes);
    let (named, cost) = tamper::cost(|| readers::elf(&file, &offsets));
    check::bounded(cost, bytes.len());
    assert_eq!(named.unwrap().len(), offsets.len());
}

#[test]
fn a_perf_map_that_covers_everything_again_and_again_is_given_up() {
    let line = b"0 ffffffffffffffff everything\n";
    let bytes = line.repeat(1 << 16);
    let addresses: Vec<u64> = (0..4096).collect();
    let file = check::file(&bytes);
    let (named, cost) = tamper::cost(|| readers::perf_map(&file, &addresses));
    check::bounded(cost, bytes.len());
    assert!(named.is_err());
}

/// Size of a table to which each unit or function of a debug file refers, in bytes.
const SHARED: usize = 100 << 10;

/// Returns a DWARF 4 unit for all addresses with these entries. Its lines begin at offset 0.
fn unit(entries: &[u8]) -> Vec<u8> {
    let all = [0_u64, 1 << 47].map(u64::to_le_bytes).concat();
    let header = [&[4, 0, 0, 0, 0, 0, 8, 1][..], &all, &[0; 4]].concat();
    let unit = [&header[..], entries, &[0]].concat();
    [&(unit.len() as u32).to_le_bytes()[..], &unit].concat()
}

/// Returns a table of lines of one file, with a line for each byte of the program except the last
/// three.
fn lines() -> Vec<u8> {
    let tables = [1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1];
    let tables = [&tables[..], b"\0a\0\0\0\0\0"].concat();
    // Each byte advances to the next address, in the same line.
    let program = [vec![32; SHARED], vec![0, 1, 1]].concat();
    let header = (tables.len() as u32).to_le_bytes();
    let rest = [&[4, 0][..], &header, &tables, &program].concat();
    [&(rest.len() as u32).to_le_bytes()[..], &rest].concat()
}

#[test]
fn debug_information_that_grows_is_refused_before_it_does() {
    // The abbreviations are for a unit, a function with a list of ranges, and an empty unit.
    let abbreviations: [&[u8]; 3] = [
        &[1, 0x11, 1, 0x11, 0x01, 0x12, 0x07, 0x10, 0x17, 0, 0],
        &[2, 0x2e, 0, 0x55, 0x17, 0, 0],
        &[3, 0x11, 0, 0, 0],
    ];
    let abbreviations = [&abbreviations.concat()[..], &[0]].concat();
    let empty_unit = [8, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 3];
    let ranges = [0x1000_u64, 0x2000].map(u64::to_le_bytes).concat();
    let ranges = [ranges.repeat(SHARED / 16), vec![0; 16]].concat();
    let functions = [2, 0, 0, 0, 0].repeat(SHARED / 5);
    for (name, information, packing) in [
        ("packed units", empty_unit.repeat(2_000_000), "zlib-gabi"),
        ("units with the same lines", unit(&[]).repeat(3_000), "none"),
        ("functions with the same ranges", unit(&functions), "none"),
    ] {
        let bytes = seeds::with_sections(
            &[
                (".debug_info", &information),
                (".debug_abbrev", &abbreviations),
                (".debug_line", &lines()),
                (".debug_ranges", &ranges),
            ],
            packing,
        );
        let offsets: Vec<u64> = (0..bytes.len().min(8192) as u64).collect();
        let file = check::file(&bytes);
        let (found, cost) = tamper::cost(|| readers::sources(&file, &offsets));
        println!("{name}: {} bytes, {cost:?}", bytes.len());
        check::bounded(cost, bytes.len());
        let found = found.unwrap();
        assert!(
            !found.is_empty() && found.values().all(Vec::is_empty),
            "{name}"
        );
    }
    // As a control, a single function is read.
    let sections: [(&str, &[u8]); 4] = [
        (".debug_info", &unit(&[2, 0, 0, 0, 0])),
        (".debug_abbrev", &abbreviations),
        (".debug_line", &lines()),
        (".debug_ranges", &ranges),
    ];
    let file = check::file(&seeds::with_sections(&sections, "none"));
    let found = readers::sources(&file, &(0..8192).collect::<Vec<_>>()).unwrap();
    assert!(found.values().any(|lines| !lines.is_empty()));
}
