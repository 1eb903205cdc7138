//! The symbols of an ELF image.

use std::ops::Range;

use crate::Source;
use crate::file::elf::{Elf, Fields, Section};

/// Bytes of symbols, and of their names, that are accepted.
const SYMBOLS_LIMIT: u64 = 32 << 20;
/// Bytes of a name that are looked at.
const NAME_LIMIT: usize = 512;

pub(crate) const SHT_SYMTAB: u32 = 2;
pub(crate) const SHT_DYNSYM: u32 = 11;
pub(crate) const SYMBOL_SIZE: usize = 24;
const STT_NOTYPE: u8 = 0;
const STT_FUNC: u8 = 2;
const STT_GNU_IFUNC: u8 = 10;

/// A symbol of something that the image itself has.
pub(crate) struct Symbol<'a> {
    pub(crate) name: &'a [u8],
    /// `STT_...`.
    pub(crate) kind: u8,
    is_local: bool,
    /// Empty if its size is not known.
    pub(crate) range: Range<u64>,
}

impl<'a> Symbol<'a> {
    /// Of an `Elf64_Sym`; `None` if it is of something else's.
    pub(crate) fn new(bytes: &[u8; SYMBOL_SIZE], name: &'a [u8]) -> Option<Symbol<'a>> {
        let fields = Fields(bytes);
        let start = fields.u64(8);
        let is_defined = fields.u16(6) != 0;
        is_defined.then(|| Symbol {
            name,
            kind: bytes[4] & 0xf,
            is_local: bytes[4] >> 4 == 0,
            range: start..start.saturating_add(fields.u64(16)),
        })
    }
}

/// Hands the name and the addresses of every function to `visit`: of
/// `.symtab`, or where there is none of `.dynsym`. Those of unknown size are
/// empty.
pub(crate) fn for_each_function<S: Source + ?Sized>(
    elf: &Elf<'_, S>,
    mut visit: impl FnMut(&[u8], Range<u64>),
) {
    let of_kind = |kind| elf.sections().iter().find(|section| section.kind == kind);
    let Some(section) = of_kind(SHT_SYMTAB).or_else(|| of_kind(SHT_DYNSYM)) else {
        return;
    };
    for_each(elf, section, |symbol| {
        // Assembly has labels of no type within its functions.
        if matches!(symbol.kind, STT_FUNC | STT_GNU_IFUNC)
            || symbol.kind == STT_NOTYPE && !symbol.is_local
        {
            visit(symbol.name, symbol.range);
        }
    });
}

/// Hands every symbol of a section to `visit`.
pub(crate) fn for_each<S: Source + ?Sized>(
    elf: &Elf<'_, S>,
    section: &Section,
    mut visit: impl FnMut(Symbol<'_>),
) {
    let read = |section: &Section| {
        let small = section.size <= SYMBOLS_LIMIT;
        small.then(|| elf.contents("symbols", section).ok())?
    };
    let table = read(section).unwrap_or_default();
    let names = elf.sections().get(section.link as usize).and_then(read);
    let names = names.unwrap_or_default();
    for bytes in table.as_chunks().0 {
        let name = name(&names, Fields(bytes).u32(0));
        if let Some(symbol) = Symbol::new(bytes, name) {
            visit(symbol);
        }
    }
}

/// The name at an offset of a string table.
fn name(names: &[u8], offset: u32) -> &[u8] {
    let rest = names.get(offset as usize..).unwrap_or_default();
    let rest = &rest[..rest.len().min(NAME_LIMIT)];
    rest.split(|&byte| byte == 0).next().unwrap_or_default()
}
