//! Tests of the bounds of reads, and of the charges for them.
#![allow(clippy::unwrap_used)]

mod common;

use std::cell::Cell;
use std::io::{self, ErrorKind, Write};

use common::{Made, made};
use elf::layout::{SHT_NOBITS, SHT_PROGBITS, SHT_STRTAB, SHT_SYMTAB};
use elf::{Elf, Error, Segments, Source};

const SECTIONS: u64 = 64 << 10;
const SYMBOLS: u64 = 32 << 20;
const LONGEST_NAME: usize = 4 << 10;

#[test]
fn other_files_are_refused() {
    let head = std::fs::read("/proc/self/exe").unwrap();
    assert!(Elf::read(&head).is_ok());
    for (at, value) in [(0, 0), (4, 3), (5, 2)] {
        let mut other = head.clone();
        other[at] = value;
        assert!(matches!(Elf::read(&other), Err(Error::NotElf)));
        assert!(matches!(Segments::read(&other), Err(Error::NotElf)));
    }
    assert!(matches!(Elf::read(&head[..51]), Err(Error::NotElf)));
    // Entries of an unexpected size are refused.
    for at in [54, 58] {
        let mut other = head.clone();
        other[at] -= 1;
        assert!(matches!(Elf::read(&other), Err(Error::Damaged { .. })));
    }
}

#[test]
fn sections_beyond_what_the_header_can_count_are_bounded() {
    let sections = |count: u64| {
        let mut head = [0; 128];
        head[..6].copy_from_slice(b"\x7fELF\x02\x01");
        // The offsets 40, 58 and 64 + 32 are those of e_shoff, e_shentsize, and sh_size of the
        // first section.
        head[40] = 64;
        head[58] = 64;
        head[64 + 32..][..8].copy_from_slice(&count.to_le_bytes());
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&head).unwrap();
        file.set_len(64 + 64 * count).unwrap();
        Elf::read(&file).map(|elf| elf.sections().len() as u64)
    };
    assert_eq!(sections(SECTIONS).unwrap(), SECTIONS);
    for count in [SECTIONS + 1, SECTIONS + 2] {
        assert!(matches!(sections(count), Err(Error::TooLarge { .. })));
    }
}

/// Returns a file whose symbol table claims `count` symbols and has these names.
fn symbols(count: u64, names: &[u8]) -> Vec<u8> {
    made(&[
        Made {
            name: ".symtab",
            kind: SHT_SYMTAB,
            flags: 0,
            contents: &[],
            size: 24 * count,
            link: 2,
        },
        Made {
            name: ".strtab",
            kind: SHT_STRTAB,
            flags: 0,
            contents: names,
            size: names.len() as u64,
            link: 0,
        },
    ])
}

#[test]
fn symbols_are_bounded() {
    let refused = |count: u64| {
        let bytes = symbols(count, b"\0");
        let elf = Elf::read(&bytes).unwrap();
        let table = elf.symbol_table(SHT_SYMTAB).unwrap().unwrap();
        table.for_each(|_| Ok::<(), Error>(())).unwrap_err()
    };
    // The file has no symbols.
    assert!(matches!(refused(SYMBOLS), Error::OutOfBounds { .. }));
    assert!(matches!(refused(SYMBOLS + 1), Error::TooLarge { .. }));
    assert!(matches!(refused(SYMBOLS + 2), Error::TooLarge { .. }));
    assert!(matches!(refused(u64::MAX / 24), Error::TooLarge { .. }));
}

#[test]
fn names_are_bounded() {
    let named = |length: usize| {
        let bytes = symbols(0, &[vec![b'a'; length], vec![0]].concat());
        let elf = Elf::read(&bytes).unwrap();
        let table = elf.symbol_table(SHT_SYMTAB).unwrap().unwrap();
        table.name(0).map(|name| name.len())
    };
    assert_eq!(named(0), None);
    assert_eq!(named(1), Some(1));
    assert_eq!(named(LONGEST_NAME - 1), Some(LONGEST_NAME - 1));
    assert_eq!(named(LONGEST_NAME), None);
    assert_eq!(named(LONGEST_NAME + 1), None);
}

#[test]
fn contents_are_read_up_to_the_end_of_the_file_if_there_is_room() {
    let read = |kind: u32, size: u64, mut room: u64| {
        let sections = [Made {
            name: "some",
            kind,
            flags: 0,
            contents: b"",
            size,
            link: 0,
        }];
        // The section begins at the end of the file.
        let mut bytes = made(&sections);
        let end = (bytes.len() as u64).to_le_bytes();
        let header = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize + 64;
        bytes[header + 24..][..8].copy_from_slice(&end);
        bytes.extend(b"text");
        let elf = Elf::read(&bytes).unwrap();
        let read = elf.contents("some", &mut room);
        read.map(|read| (read, room)).map_err(|error| match error {
            Error::OutOfBounds { .. } => "out of bounds",
            Error::TooLarge { .. } => "too large",
            _ => "another",
        })
    };
    assert_eq!(read(SHT_PROGBITS, 4, 6), Ok((b"text".to_vec(), 2)));
    assert_eq!(read(SHT_PROGBITS, 4, 4), Ok((b"text".to_vec(), 0)));
    assert_eq!(read(SHT_PROGBITS, 4, 3), Err("too large"));
    assert_eq!(read(SHT_PROGBITS, 5, 6), Err("out of bounds"));
    assert_eq!(read(SHT_PROGBITS, u64::MAX, u64::MAX), Err("out of bounds"));
    assert_eq!(read(SHT_NOBITS, 4, 6), Ok((Vec::new(), 6)));
}

/// A source that claims any size, and refuses large reads.
struct Refusing {
    bytes: Vec<u8>,
    charged: Cell<u64>,
}

impl Source for Refusing {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        assert!(
            self.charged.get() >= buffer.len() as u64,
            "before it is charged"
        );
        self.bytes.read_at(offset, buffer)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(u64::MAX)
    }

    fn charge(&self, bytes: u64) -> io::Result<()> {
        if bytes > 1 << 16 {
            return Err(ErrorKind::QuotaExceeded.into());
        }
        self.charged.set(self.charged.get() + bytes);
        Ok(())
    }
}

#[test]
fn what_is_read_or_decompressed_is_charged_before() {
    let section = |name, size| Made {
        name,
        kind: SHT_PROGBITS,
        flags: 0,
        contents: b"text",
        size,
        link: 0,
    };
    let sections = [
        section("few", 4),
        section("refused", 1 << 20),
        section("too many", 1 << 40),
    ];
    let source = Refusing {
        bytes: made(&sections),
        charged: Cell::new(0),
    };
    let elf = Elf::read(&source).unwrap();
    let before = source.charged.get();
    let contents = |name| elf.contents(name, &mut { u64::MAX });
    assert_eq!(contents("few").unwrap(), b"text");
    assert_eq!(source.charged.get(), before + 4);
    let refused = io::Error::from(contents("refused").unwrap_err());
    assert_eq!(refused.kind(), ErrorKind::QuotaExceeded);
    let too_many = contents("too many").unwrap_err();
    assert!(matches!(too_many, Error::TooLarge { .. }), "{too_many}");
    assert_eq!(source.charged.get(), before + 4);
}
