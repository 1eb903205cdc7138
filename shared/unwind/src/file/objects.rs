//! The variables of an ELF image, found by their names, and their initial values.

use std::ops::Range;

use crate::file::elf::{Elf, Fields, Section};
use crate::file::symbols::{self, SHT_DYNSYM, SHT_SYMTAB, SYMBOL_SIZE};
use crate::{Error, Source};

/// Symbols with the same hash, or one that ends in the same bucket, that are looked
/// at; linkers make tables with a few in each.
const CHAIN_LIMIT: u64 = 1024;
/// Bytes that are accepted.
const SIZE_LIMIT: u64 = 1 << 20;

const STT_OBJECT: u8 = 1;
const SHT_GNU_HASH: u32 = 0x6fff_fff6;

/// The variables of an ELF image.
pub struct Objects<'a, S: Source + ?Sized>(Elf<'a, S>);

impl<'a, S: Source + ?Sized> Objects<'a, S> {
    /// Of this image.
    ///
    /// # Errors
    ///
    /// If it cannot be read or is none for this architecture.
    pub fn new(source: &'a S) -> Result<Objects<'a, S>, Error> {
        Elf::new(source).map(Objects)
    }

    /// The virtual addresses of the variable that has this name, if the image
    /// itself has it and says its size. It is looked up in the dynamic symbols,
    /// by their hash table if there is one, and else in all of the others.
    pub fn find(&self, name: &str) -> Option<Range<u64>> {
        let of_kind = |kind| {
            self.0
                .sections()
                .iter()
                .find(|section| section.kind == kind)
        };
        let by_hash = of_kind(SHT_GNU_HASH).map(|table| self.by_hash(table, name.as_bytes()));
        by_hash
            .unwrap_or_else(|| self.in_order(of_kind(SHT_DYNSYM)?, name.as_bytes()))
            .or_else(|| self.in_order(of_kind(SHT_SYMTAB)?, name.as_bytes()))
    }

    /// The `size` bytes at a virtual address, as they are when the image is loaded;
    /// `None` if the file does not have all of them.
    pub fn bytes(&self, address: u64, size: u64) -> Option<Vec<u8>> {
        let offset = self.0.offset(address, size)?;
        let accepted = size <= SIZE_LIMIT;
        accepted.then(|| self.0.read("variable", offset, size).ok())?
    }

    /// The virtual addresses of the functions whose names are `wanted`, of which the
    /// image says the size.
    pub fn functions(&self, wanted: impl Fn(&[u8]) -> bool) -> Vec<Range<u64>> {
        let mut found = Vec::new();
        symbols::for_each_function(&self.0, |name, range| {
            if !range.is_empty() && wanted(name) {
                found.push(range);
            }
        });
        found
    }

    fn in_order(&self, section: &Section, name: &[u8]) -> Option<Range<u64>> {
        let mut found = None;
        symbols::for_each(&self.0, section, |symbol| {
            if found.is_none() && symbol.kind == STT_OBJECT && symbol.name == name {
                found = sized(symbol.range);
            }
        });
        found
    }

    /// By `.gnu.hash`: a Bloom filter, then the first symbol of each bucket, then the
    /// hash of each symbol, of which the lowest bit says that it is the last one
    /// (<https://sourceware.org/gnu-gabi/program-loading-and-dynamic-linking.txt>).
    fn by_hash(&self, table: &Section, name: &[u8]) -> Option<Range<u64>> {
        let header = self.part(table, 0, 16)?;
        let header = Fields(&header);
        let [buckets, first, words, shift] = [0, 4, 8, 12].map(|at| u64::from(header.u32(at)));
        let hash = gnu_hash(name);
        let word = u64::from(hash / 64).checked_rem(words)?;
        let word = Fields(&self.part(table, 16 + word * 8, 8)?).u64(0);
        let other = u64::from(hash).checked_shr(shift as u32)?;
        if word >> (hash % 64) & word >> (other % 64) & 1 == 0 {
            return None;
        }
        let bucket = u64::from(hash).checked_rem(buckets)?;
        let buckets_at = 16 + words * 8;
        let begin = Fields(&self.part(table, buckets_at + bucket * 4, 4)?).u32(0);
        let hashes_at = buckets_at + buckets * 4;
        for symbol in u64::from(begin)..u64::from(begin) + CHAIN_LIMIT {
            let at = hashes_at + symbol.checked_sub(first)? * 4;
            let found = Fields(&self.part(table, at, 4)?).u32(0);
            if found | 1 == hash | 1
                && let Some(range) = self.dynamic_symbol(table, symbol, name)
            {
                return Some(range);
            }
            if found & 1 == 1 {
                break;
            }
        }
        None
    }

    /// The dynamic symbol of that index, if it is a variable with this name.
    fn dynamic_symbol(&self, table: &Section, index: u64, name: &[u8]) -> Option<Range<u64>> {
        let section = |index: u32| self.0.sections().get(index as usize);
        let symbols = section(table.link)?;
        let size = SYMBOL_SIZE as u64;
        let bytes = self.part(symbols, index * size, size)?;
        let symbol = symbols::Symbol::new(bytes.first_chunk()?, name)?;
        let at = u64::from(Fields(&bytes).u32(0));
        let found = self.part(section(symbols.link)?, at, name.len() as u64 + 1)?;
        let same = found.split_last() == Some((&0, name)) && symbol.kind == STT_OBJECT;
        same.then(|| sized(symbol.range))?
    }

    /// Bytes of a section.
    fn part(&self, section: &Section, at: u64, size: u64) -> Option<Vec<u8>> {
        let within = at.checked_add(size)? <= section.size;
        let offset = section.offset.checked_add(at).filter(|_| within)?;
        self.0.read("symbols", offset, size).ok()
    }
}

fn sized(range: Range<u64>) -> Option<Range<u64>> {
    (!range.is_empty()).then_some(range)
}

/// `dl_new_hash` of glibc's elf/dl-lookup.c.
fn gnu_hash(name: &[u8]) -> u32 {
    name.iter().fold(5381, |hash: u32, &byte| {
        hash.wrapping_mul(33).wrapping_add(u32::from(byte))
    })
}
