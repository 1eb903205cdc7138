//! ELF header at the beginning of a file.

use crate::error::Error;
use crate::layout::{Fields, HEADER_SIZE, HEADER_SIZE_32};
use crate::source::{Bounded, Source};

/// `Elf64_Ehdr` or `Elf32_Ehdr`.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// `true` for a 64-bit file, `false` for a 32-bit file.
    pub is_64_bit: bool,
    /// Number of the processor architecture, `e_machine`.
    pub machine: u16,
    /// Virtual address of the first instruction; 0 in most libraries.
    pub entry: u64,
    /// Place of the program headers.
    pub segments: Table,
    /// Place of the section headers.
    pub sections: Table,
    /// Index of the section with the names of sections, `e_shstrndx`.
    pub section_names: u16,
}

/// Place of a table of headers in a file.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Size of an entry, in bytes.
    pub entry_size: u16,
    /// Number of entries.
    pub count: u16,
}

impl Header {
    /// Parses the header from the first bytes of a file. [`HEADER_SIZE`] bytes suffice. Returns
    /// `None` if the file is no little-endian ELF file.
    pub fn parse(bytes: &[u8]) -> Option<Header> {
        const MAGIC: &[u8] = b"\x7fELF";
        const LITTLE_ENDIAN: u8 = 1;
        let fields = Fields(bytes);
        let (is_64_bit, size) = match fields.u8(4) {
            1 => (false, HEADER_SIZE_32),
            2 => (true, HEADER_SIZE),
            _ => return None,
        };
        if !bytes.starts_with(MAGIC) || fields.u8(5) != LITTLE_ENDIAN || bytes.len() < size {
            return None;
        }
        let counts = if is_64_bit { 54 } else { 42 };
        let table = |offset, at: usize| Table {
            offset,
            entry_size: fields.u16(counts + at),
            count: fields.u16(counts + at + 2),
        };
        Some(Header {
            is_64_bit,
            machine: fields.u16(18),
            entry: fields.word(is_64_bit, 24, 24),
            segments: table(fields.word(is_64_bit, 32, 28), 0),
            sections: table(fields.word(is_64_bit, 40, 32), 4),
            section_names: fields.u16(counts + 8),
        })
    }

    /// Returns whether this is a 64-bit file for this processor architecture.
    pub fn is_for(&self, machine: u16) -> bool {
        self.is_64_bit && self.machine == machine
    }

    pub(crate) fn read<S: Source>(file: &Bounded<S>) -> Result<Header, Error> {
        let size = file.size().min(HEADER_SIZE as u64);
        let bytes = file.bytes("ELF header", 0, size)?;
        Header::parse(&bytes).ok_or(Error::NotElf)
    }
}

impl Table {
    /// Returns an error if the size of the entries is not the `expected` one of the ELF format.
    pub(crate) fn check(&self, what: &'static str, expected: usize) -> Result<(), Error> {
        if usize::from(self.entry_size) == expected {
            return Ok(());
        }
        let reason = "its entries have another size than the ELF format gives them";
        Err(Error::Damaged { what, reason })
    }
}
