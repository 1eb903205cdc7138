//! Symbol tables, and the names of their symbols.

use std::ops::Range;

use crate::error::Error;
use crate::layout::{Fields, SHN_UNDEF, SYMBOL_SIZE, SYMBOL_SIZE_32};
use crate::reader::Elf;
use crate::sections::Section;
use crate::source::Source;

/// Maximum number of symbols in a table.
const SYMBOL_LIMIT: u64 = 32 << 20;
/// Maximum size of a compressed table, in bytes. Its compressed and its decompressed size count
/// together. The same limit holds for compressed names.
const DECOMPRESSED_LIMIT: u64 = 256 << 20;
/// Maximum size of a name in the file, in bytes, including its zero byte.
pub(crate) const NAME_LIMIT: usize = 4 << 10;
/// Number of symbols that are read at a time.
const BATCH: u64 = 4 << 10;

/// Symbol without its name.
#[derive(Clone, Copy, Debug)]
pub struct Symbol {
    /// Offset of the name among the names of the table, in bytes.
    pub name: u32,
    /// Type and binding, `st_info`.
    pub info: u8,
    /// Index of the section that defines the symbol; `SHN_UNDEF` if no section does.
    pub section: u16,
    /// Virtual address.
    pub address: u64,
    /// Size in bytes; 0 if it is unknown.
    pub size: u64,
}

impl Symbol {
    /// Parses an `Elf64_Sym` or `Elf32_Sym`.
    #[inline]
    pub(crate) fn new(bytes: &[u8], is_64_bit: bool) -> Symbol {
        let fields = Fields(bytes);
        let info = if is_64_bit { 4 } else { 12 };
        Symbol {
            name: fields.u32(0),
            info: fields.u8(info),
            section: fields.u16(info + 2),
            address: fields.word(is_64_bit, 8, 4),
            size: fields.word(is_64_bit, 16, 8),
        }
    }

    /// Returns the type of the symbol (`STT_...`).
    #[inline]
    pub fn kind(&self) -> u8 {
        self.info & 0xf
    }

    /// Returns whether the symbol is local, so that other files cannot refer to it.
    #[inline]
    pub fn is_local(&self) -> bool {
        self.info >> 4 == 0
    }

    /// Returns whether the file itself defines the symbol.
    #[inline]
    pub fn is_defined(&self) -> bool {
        self.section != SHN_UNDEF
    }

    /// Returns the addresses of the symbol; an empty range if its size is unknown.
    #[inline]
    pub fn range(&self) -> Range<u64> {
        self.address..self.address.saturating_add(self.size)
    }
}

/// Symbol table, and the names of its symbols.
pub struct SymbolTable<'e, S> {
    elf: &'e Elf<S>,
    symbols: Place,
    names: Place,
}

/// Place of the contents of a section.
enum Place {
    InFile { offset: u64, size: u64 },
    Decompressed(Vec<u8>),
}

impl Place {
    fn find<S: Source>(elf: &Elf<S>, what: &'static str, section: &Section) -> Result<Self, Error> {
        if elf.is_compressed(section) {
            let bytes = elf.section_contents(what, section, &mut DECOMPRESSED_LIMIT.clone())?;
            return Ok(Place::Decompressed(bytes));
        }
        Ok(Place::InFile {
            offset: section.offset,
            size: section.size,
        })
    }

    fn size(&self) -> u64 {
        match self {
            Place::InFile { size, .. } => *size,
            Place::Decompressed(bytes) => bytes.len() as u64,
        }
    }
}

impl<S: Source> Elf<S> {
    /// Returns the symbol table of this type, `SHT_SYMTAB` or `SHT_DYNSYM`; `None` if the file has
    /// none. Decompresses a compressed table now. Does not read another table yet.
    ///
    /// # Errors
    /// The table has no names, or the table or its names cannot be decompressed.
    pub fn symbol_table(&self, kind: u32) -> Result<Option<SymbolTable<'_, S>>, Error> {
        let Some(table) = self.section_of_kind(kind) else {
            return Ok(None);
        };
        let names = self.sections().get(table.link as usize);
        let names = names.ok_or(Error::Damaged {
            what: "symbols",
            reason: "no section has their names",
        })?;
        Ok(Some(SymbolTable {
            elf: self,
            symbols: Place::find(self, "symbols", table)?,
            names: Place::find(self, "names of symbols", names)?,
        }))
    }
}

impl<'e, S: Source> SymbolTable<'e, S> {
    /// Returns a table of 64-bit symbols that no section has. Their names are `size` bytes of the
    /// file at this offset.
    pub(crate) fn made_up(elf: &'e Elf<S>, symbols: Vec<u8>, offset: u64, size: u64) -> Self {
        SymbolTable {
            elf,
            symbols: Place::Decompressed(symbols),
            names: Place::InFile { offset, size },
        }
    }

    /// Returns the size of the symbols, in bytes.
    pub fn size(&self) -> u64 {
        self.symbols.size()
    }

    /// Calls `visit` with every symbol.
    ///
    /// # Errors
    /// The symbols cannot be read, the table has too many of them, or `visit` fails.
    pub fn for_each<E: From<Error>>(
        &self,
        mut visit: impl FnMut(Symbol) -> Result<(), E>,
    ) -> Result<(), E> {
        let what = "symbols";
        let is_64_bit = self.elf.header().is_64_bit;
        let size = if is_64_bit {
            SYMBOL_SIZE
        } else {
            SYMBOL_SIZE_32
        };
        let mut visit_all = |bytes: &[u8]| {
            let mut symbols = bytes.chunks_exact(size);
            symbols.try_for_each(|bytes| visit(Symbol::new(bytes, is_64_bit)))
        };
        let count = self.size() / size as u64;
        Error::limit(what, count, SYMBOL_LIMIT)?;
        match &self.symbols {
            Place::Decompressed(bytes) => visit_all(bytes),
            Place::InFile { offset, .. } => {
                for first in (0..count).step_by(BATCH as usize) {
                    let here = BATCH.min(count - first);
                    let offset = offset.saturating_add(first * size as u64);
                    visit_all(&self.elf.bytes(what, offset, here * size as u64)?)?;
                }
                Ok(())
            }
        }
    }

    /// Reads the name at an offset among the names; `None` if the name is empty, too long or
    /// missing.
    pub fn name(&self, offset: u32) -> Option<String> {
        let offset = u64::from(offset);
        let mut name = Vec::new();
        let is_whole = match &self.names {
            Place::Decompressed(bytes) => {
                let rest = bytes.get(offset as usize..)?;
                append_name(&mut name, &rest[..rest.len().min(NAME_LIMIT)])
            }
            Place::InFile {
                offset: start,
                size,
            } => {
                let mut piece = [0; 256];
                let mut at = offset;
                loop {
                    let left = size.checked_sub(at)?.min(piece.len() as u64);
                    let piece = &mut piece[..left as usize];
                    let place = start.checked_add(at)?;
                    let read = self.elf.fill("names of symbols", place, piece)?;
                    at += read as u64;
                    let is_whole = append_name(&mut name, &piece[..read]);
                    if is_whole || read == 0 || name.len() >= NAME_LIMIT {
                        break is_whole;
                    }
                }
            }
        };
        let name = String::from_utf8_lossy(&name);
        (is_whole && !name.is_empty()).then(|| name.into_owned())
    }

    /// Reads all names. Returns no names if they cannot be read, or if their total size exceeds
    /// `limit` bytes.
    pub(crate) fn names(&self, limit: u64) -> Names {
        if self.names.size() > limit {
            return Names(Vec::new());
        }
        let names = match &self.names {
            Place::Decompressed(bytes) => Ok(bytes.clone()),
            Place::InFile { offset, size } => self.elf.bytes("names of symbols", *offset, *size),
        };
        Names(names.unwrap_or_default())
    }
}

/// Appends the bytes before the first zero byte. Returns whether there is a zero byte.
fn append_name(name: &mut Vec<u8>, bytes: &[u8]) -> bool {
    let end = bytes.iter().position(|&byte| byte == 0);
    name.extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
    end.is_some()
}

/// Names of symbols.
pub(crate) struct Names(Vec<u8>);

impl Names {
    /// Maximum number of bytes that are returned of a name.
    const PREFIX: usize = 512;

    /// Returns the name at an offset, or the beginning of a long name.
    #[inline]
    pub(crate) fn get(&self, offset: u32) -> &[u8] {
        let rest = self.0.get(offset as usize..).unwrap_or_default();
        let rest = &rest[..rest.len().min(Names::PREFIX)];
        rest.split(|&byte| byte == 0).next().unwrap_or_default()
    }
}
