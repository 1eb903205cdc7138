//! The symbols of an ELF image that name code.

use std::ops::Range;

use crate::Source;
use crate::file::elf::{Elf, Fields, Section};

/// Bytes of symbols, and of their names, that are accepted.
const SYMBOLS_LIMIT: u64 = 32 << 20;
/// Bytes of a name that are looked at.
const NAME_LIMIT: usize = 512;

const SHT_SYMTAB: u32 = 2;
const SHT_DYNSYM: u32 = 11;
const SYMBOL_SIZE: usize = 24;
const STT_NOTYPE: u8 = 0;
const STT_FUNC: u8 = 2;
const STT_GNU_IFUNC: u8 = 10;

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
    let read = |section: &Section| {
        let small = section.size <= SYMBOLS_LIMIT;
        small.then(|| elf.read("symbols", section.offset, section.size).ok())?
    };
    let table = read(section).unwrap_or_default();
    let names = elf.sections().get(section.link as usize).and_then(read);
    let names = names.unwrap_or_default();
    for bytes in table.chunks_exact(SYMBOL_SIZE) {
        // Elf64_Sym.
        let fields = Fields(bytes);
        let (kind, local) = (bytes[4] & 0xf, bytes[4] >> 4 == 0);
        let defined = fields.u16(6) != 0;
        // Assembly has labels of no type within its functions.
        let function = matches!(kind, STT_FUNC | STT_GNU_IFUNC) || kind == STT_NOTYPE && !local;
        if function && defined {
            let start = fields.u64(8);
            let range = start..start.saturating_add(fields.u64(16));
            visit(name(&names, fields.u32(0)), range);
        }
    }
}

/// The name at an offset of a string table.
fn name(names: &[u8], offset: u32) -> &[u8] {
    let rest = names.get(offset as usize..).unwrap_or_default();
    let rest = &rest[..rest.len().min(NAME_LIMIT)];
    rest.split(|&byte| byte == 0).next().unwrap_or_default()
}
