//! Functions that Go's runtime knows, from the table that every Go program contains.
//!
//! The linker keeps this table (`.gopclntab`) when it leaves out all symbols, because the runtime
//! needs the table for its own stacks. The format is that of Go's `src/debug/gosym/pclntab.go`.

use std::ops::Range;

use crate::layout::{Fields, STT_FUNC, SYMBOL_SIZE};
use crate::reader::Elf;
use crate::sections::Section;
use crate::source::Source;
use crate::symbols::SymbolTable;

/// Maximum size of the table, in bytes. The table of Kubernetes has 40 MB.
const TABLE_LIMIT: u64 = 128 << 20;
/// Maximum number of functions.
const FUNCTION_LIMIT: usize = 1 << 20;
/// Maximum size of relocations that are searched, in bytes.
const RELOCATION_LIMIT: u64 = 32 << 20;
/// Size of the largest header, in bytes.
const HEADER_SIZE: u64 = 72;
/// Names of the section. Programs for random addresses had the second one until Go 1.25.
const SECTIONS: [&str; 2] = [".gopclntab", ".data.rel.ro.gopclntab"];
/// Name of the section with the version of Go.
const BUILD: &str = ".go.buildinfo";
/// Word of the header for instructions of any length and addresses of eight bytes.
const INSTRUCTIONS_AND_ADDRESSES: u32 = 0x0801_0000;
/// Offset of the address of the first function in `runtime.moduledata`, since Go 1.16.
const MODULE_TEXT: u64 = 176;

/// Places of the parts of the table, as offsets in the table.
struct Parts {
    count: u64,
    /// Names of functions.
    names: Range<u64>,
    /// Entries of functions: address, and offset of the description.
    entries: u64,
    /// Start of the descriptions.
    descriptions: u64,
    /// Address to which entries add; `None` if entries have addresses.
    text: Option<u64>,
}

impl<S: Source> Elf<S> {
    /// Returns whether Go built the program.
    pub fn is_go(&self) -> bool {
        let sections = SECTIONS.iter().chain(&[BUILD]);
        { sections }.any(|name| self.section(name).is_some())
    }

    /// Returns the section with the functions that Go's runtime knows, or the part of a section.
    fn go_table(&self) -> Option<Section> {
        let section = SECTIONS.iter().find_map(|name| self.section(name));
        section.copied().or_else(|| self.search_go_table())
    }

    /// Finds the table in a program for random addresses that another linker has linked. Until Go
    /// 1.25 that linker put the table among other data.
    fn search_go_table(&self) -> Option<Section> {
        self.section(BUILD)?;
        let section = self.section(".data.rel.ro")?;
        if section.size > TABLE_LIMIT || !section.is_in_file() {
            return None;
        }
        let bytes = self.bytes("Go's functions", section.offset, section.size);
        let bytes = bytes.ok()?;
        let is_start = |bytes: &[u8]| {
            matches!(Fields(bytes).u32(0), 0xffff_fff0 | 0xffff_fff1)
                && Fields(bytes).u32(4) == INSTRUCTIONS_AND_ADDRESSES
        };
        let into = bytes.chunks(8).position(is_start)? as u64 * 8;
        Some(Section {
            address: section.address.checked_add(into)?,
            offset: section.offset.checked_add(into)?,
            size: section.size.checked_sub(into)?,
            ..*section
        })
    }

    /// Returns the functions that Go's runtime knows, as symbols; `None` if the file has no such
    /// table in a known format. A function ends where the next one begins.
    pub fn go_functions(&self) -> Option<SymbolTable<'_, S>> {
        let section = self.go_table()?;
        if section.size > TABLE_LIMIT || !self.header().is_64_bit {
            return None;
        }
        let part = |range: Range<u64>| {
            let size = range.end.checked_sub(range.start)?;
            let offset = section.offset.checked_add(range.start)?;
            let is_within = range.end <= section.size && section.is_in_file();
            is_within.then(|| self.bytes("Go's functions", offset, size).ok())?
        };
        let header = part(0..HEADER_SIZE.min(section.size))?;
        let parts = self.parts(&section, &Fields(&header))?;
        let entries = part(parts.entries..section.size)?;
        let into = parts.descriptions.checked_sub(parts.entries);
        let whole = if into.is_none() {
            part(0..section.size)?
        } else {
            Vec::new()
        };
        let descriptions = match into {
            Some(into) => entries.get(into as usize..)?,
            None => &whole[..],
        };
        let symbols = read_symbols(&parts, &entries, descriptions)?;
        let names = section.offset.checked_add(parts.names.start)?;
        let size = parts.names.end.checked_sub(parts.names.start)?;
        Some(SymbolTable::made_up(self, symbols, names, size))
    }

    fn parts(&self, section: &Section, header: &Fields<'_>) -> Option<Parts> {
        if header.u32(4) != INSTRUCTIONS_AND_ADDRESSES {
            return None;
        }
        let table = |first: usize, text| Parts {
            count: header.u64(8),
            names: header.u64(first)..header.u64(first + 8),
            entries: header.u64(first + 32),
            descriptions: header.u64(first + 32),
            text,
        };
        match header.u32(0) {
            // Go 1.2 to 1.15.
            0xffff_fffb => Some(Parts {
                count: header.u64(8),
                names: 0..section.size,
                entries: 16,
                descriptions: 0,
                text: None,
            }),
            // Go 1.16 and 1.17.
            0xffff_fffa => Some(table(24, None)),
            // Since Go 1.18.
            0xffff_fff0 | 0xffff_fff1 => {
                let text = match self.relocated(section.address.checked_add(24)?) {
                    // Since Go 1.26 only `runtime.moduledata` has the address.
                    0 => self.module_text(section)?,
                    text => text,
                };
                Some(table(32, Some(text)))
            }
            _ => None,
        }
    }

    /// Returns the address of the first function that `runtime.moduledata` has.
    fn module_text(&self, table: &Section) -> Option<u64> {
        let module = self.section(".go.module")?.address;
        let is_meant = self.relocated(module) == table.address;
        let text = self.relocated(module.checked_add(MODULE_TEXT)?);
        (is_meant && text != 0).then_some(text)
    }

    /// Returns the address at a virtual address, which the file or a relocation has; 0 if neither
    /// does.
    fn relocated(&self, address: u64) -> u64 {
        /// Relocation that stores an address (System V ABI for x86-64, section 4.4.1).
        const R_X86_64_RELATIVE: u64 = 8;
        const RELOCATION_SIZE: usize = 24;
        let in_file = self.initial_bytes(address, 8);
        let in_file = in_file.map_or(0, |bytes| Fields(&bytes).u64(0));
        let relocations = self.section(".rela.dyn").filter(|_| in_file == 0);
        let Some(relocations) = relocations.filter(|it| it.size <= RELOCATION_LIMIT) else {
            return in_file;
        };
        let bytes = self.bytes("relocations", relocations.offset, relocations.size);
        let bytes = bytes.unwrap_or_default();
        let mut all = bytes.chunks_exact(RELOCATION_SIZE).map(Fields);
        let found = all.find(|it| it.u64(0) == address && it.u64(8) == R_X86_64_RELATIVE);
        found.map_or(0, |it| it.u64(16))
    }
}

/// Returns symbols in the format of ELF files; `None` if the entries contradict each other.
fn read_symbols(parts: &Parts, entries: &[u8], descriptions: &[u8]) -> Option<Vec<u8>> {
    let width = if parts.text.is_some() { 4 } else { 8 };
    let number = |at: usize| -> Option<u64> {
        let mut bytes = [0; 8];
        bytes[..width].copy_from_slice(entries.get(at..at.checked_add(width)?)?);
        Some(u64::from_le_bytes(bytes))
    };
    let address = |at| number(at)?.checked_add(parts.text.unwrap_or(0));
    let count = usize::try_from(parts.count).ok()?;
    if count > FUNCTION_LIMIT || count > entries.len() / (2 * width) {
        return None;
    }
    let mut symbols = Vec::with_capacity(count.checked_mul(SYMBOL_SIZE)?);
    for index in 0..count {
        let at = index * 2 * width;
        let (start, end) = (address(at)?, address(at + 2 * width)?);
        if start == 0 || end < start {
            return None;
        }
        let description = usize::try_from(number(at + width)?).ok()?;
        let name = description.checked_add(width)?;
        let name = descriptions.get(name..name.checked_add(4)?)?;
        symbols.extend(name);
        symbols.extend([STT_FUNC, 0, 1, 0]); // a local function of some section
        symbols.extend(start.to_le_bytes());
        symbols.extend((end - start).to_le_bytes());
    }
    Some(symbols)
}
