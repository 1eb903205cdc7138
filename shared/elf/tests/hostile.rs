//! Reads files in every form that the reader supports, intact and tampered with.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{compile, objcopy, with_mini_debug_information};
use elf::layout::{SHT_DYNSYM, SHT_SYMTAB};
use elf::{Elf, Error};

#[global_allocator]
static ALLOCATOR: tamper::Measured = tamper::Measured;

const SOURCE: &str = "
int variable = 7;
int shared(int argument) { return argument + variable; }
static int hidden(int argument) { return shared(argument) + 1; }
int (*taken)(int) = hidden;
";

/// Sections that may contain debug information.
const SECTIONS: [&str; 5] = [
    ".debug_info",
    ".debug_line",
    ".debug_frame",
    ".eh_frame",
    ".gnu_debuglink",
];
/// Maximum size of all sections, in bytes.
const ROOM: u64 = 64 << 20;

fn library(options: &[&str]) -> Vec<u8> {
    let small = ["-nostdlib", "-shared", "-fPIC", "-Wl,--build-id"];
    compile("c", SOURCE, &[&small[..], options].concat())
}

/// Returns one file in each supported form.
fn seeds() -> Vec<Vec<u8>> {
    let plain = library(&["-g", "-Wl,-z,noseparate-code"]);
    let compressed = ["zlib-gabi", "zlib-gnu", "zstd"]
        .map(|how| objcopy(&plain, &[&format!("--compress-debug-sections={how}")]));
    let others = [
        with_mini_debug_information(&plain),
        library(&["-m32", "-g", "-ffreestanding", "-Wl,--hash-style=sysv"]),
        compile("c", SOURCE, &["-r", "-g"]),
    ];
    [vec![plain], compressed.to_vec(), others.to_vec()].concat()
}

#[test]
fn contents_are_the_same_however_they_are_kept() {
    let plain = library(&["-g"]);
    let whole = Elf::read(&plain).unwrap();
    let contents = |elf: &Elf<&Vec<u8>>, name| elf.contents(name, &mut ROOM.clone()).unwrap();
    let expected = contents(&whole, ".debug_info");
    assert!(expected.len() > 100);
    for how in ["zlib-gabi", "zlib-gnu", "zstd"] {
        let bytes = objcopy(&plain, &[&format!("--compress-debug-sections={how}")]);
        let elf = Elf::read(&bytes).unwrap();
        assert!(elf.has_contents(".debug_info"), "{how}");
        assert!(contents(&elf, ".debug_info") == expected, "{how}");
        assert_eq!(elf.build_id(), whole.build_id());
    }
    let bytes = with_mini_debug_information(&plain);
    let elf = Elf::read(&bytes).unwrap();
    assert!(!elf.has_contents(".debug_info") && elf.has_mini_debug_information());
    let mut mini = Vec::new();
    let read = elf.mini_debug_information(|piece| {
        mini.extend_from_slice(piece);
        Ok::<(), Error>(())
    });
    read.unwrap();
    assert!(mini == plain);
}

/// Reads everything in a file.
fn read_all(bytes: &[u8]) -> Result<(), Error> {
    let _ = Elf::read_loaded(bytes);
    let elf = Elf::read(bytes)?;
    for section in elf.sections() {
        let _ = elf.section_contents("section", section, &mut ROOM.clone());
    }
    for name in SECTIONS {
        let _ = elf.contents(name, &mut ROOM.clone());
    }
    let _ = (elf.build_id(), elf.debug_link());
    if elf.has_mini_debug_information() {
        let _ = elf.mini_debug_information(|_| Ok::<(), Error>(()));
    }
    for kind in [SHT_SYMTAB, SHT_DYNSYM] {
        if let Ok(Some(table)) = elf.symbol_table(kind) {
            let _ = table.for_each(|symbol| {
                table.name(symbol.name);
                Ok::<(), Error>(())
            });
        }
    }
    elf.for_each_function(|name, range| assert!(name.len() <= 512 && range.start <= range.end));
    for name in ["variable", "taken", "shared"] {
        if let Some(range) = elf.variable(name) {
            elf.initial_bytes(range.start, range.end - range.start);
        }
    }
    for at in [0, 1, 0x1000, bytes.len() as u64, u64::MAX] {
        let segments = elf.segments();
        let _ = (segments.address(at), segments.mapped_address(at));
        let _ = (segments.offset(at, 8), segments.has_data(at));
        segments.code_offset(at..at.saturating_add(16));
        segments.biases(at, at).for_each(drop);
    }
    Ok(())
}

#[test]
fn tampered_files_do_no_harm() {
    tamper::tamper("files", &seeds(), |bytes| {
        let (_, cost) = tamper::cost(|| read_all(bytes));
        assert!(cost.time < Duration::from_secs(2), "{cost:?}");
        // Contents expand to at most a hundred times their size, and `xz` allocates a dictionary.
        let most = (64 << 20) + 128 * bytes.len();
        assert!(cost.bytes < most, "{cost:?} for {}", bytes.len());
    });
}
