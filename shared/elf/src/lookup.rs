//! Finds variables and functions by their names.

use std::ops::Range;

use crate::error::Error;
use crate::layout::{
    Fields, SHT_DYNSYM, SHT_GNU_HASH, SHT_SYMTAB, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, STT_OBJECT,
    STT_TLS, SYMBOL_SIZE,
};
use crate::reader::Elf;
use crate::sections::Section;
use crate::source::Source;
use crate::symbols::{Symbol, SymbolTable};

/// Maximum size of the symbols that are searched, in bytes. The same limit holds for their names.
const SEARCH_LIMIT: u64 = 32 << 20;
/// Maximum number of symbols that are read of a chain of the hash table. Linkers put a few symbols
/// in each chain.
const CHAIN_LIMIT: u64 = 1024;
/// Maximum size of a variable, in bytes.
const VARIABLE_LIMIT: u64 = 1 << 20;

impl<S: Source> Elf<S> {
    /// Calls `visit` with the name and the addresses of every function in the full symbol table. If
    /// the file has no full symbol table, `visit` gets the functions of the dynamic symbol table,
    /// and those that Go's runtime knows. The range of a function of unknown size is empty. Symbols
    /// that cannot be read are left out.
    pub fn for_each_function(&self, mut visit: impl FnMut(&[u8], Range<u64>)) {
        let mut function = |symbol: &Symbol, name: &[u8]| {
            // Assembly has local labels without a type inside its functions.
            if matches!(symbol.kind(), STT_FUNC | STT_GNU_IFUNC)
                || symbol.kind() == STT_NOTYPE && !symbol.is_local()
            {
                visit(name, symbol.range());
            }
        };
        if self.section_of_kind(SHT_SYMTAB).is_some() {
            self.for_each_symbol(SHT_SYMTAB, function);
            return;
        }
        self.for_each_symbol(SHT_DYNSYM, &mut function);
        if let Some(table) = self.go_functions() {
            for_each_of(&table, function);
        }
    }

    /// Returns the virtual addresses of the functions whose names `wanted` accepts. Functions of
    /// unknown size are left out.
    pub fn functions(&self, wanted: impl Fn(&[u8]) -> bool) -> Vec<Range<u64>> {
        let mut found = Vec::new();
        self.for_each_function(|name, range| {
            if !range.is_empty() && wanted(name) {
                found.push(range);
            }
        });
        found
    }

    /// Returns the virtual addresses of the variable with this name, if the file defines it and has
    /// its size. Searches the dynamic symbols first, by their hash table if this is a 64-bit file
    /// with a hash table. Then searches the full symbol table.
    pub fn variable(&self, name: &str) -> Option<Range<u64>> {
        let full = || self.in_order(SHT_SYMTAB, name.as_bytes(), STT_OBJECT);
        self.exported_variable(name).or_else(full)
    }

    /// Returns the virtual addresses of the variable with this name, like [`Elf::variable`], but
    /// searches only the dynamic symbols.
    pub fn exported_variable(&self, name: &str) -> Option<Range<u64>> {
        self.dynamic(name.as_bytes(), STT_OBJECT)
    }

    /// Returns the offset of a thread-local variable in the file's thread-local storage, if the
    /// file defines the variable. Searches all symbols.
    pub fn thread_local(&self, name: &str) -> Option<u64> {
        let name = name.as_bytes();
        let full = || self.in_order(SHT_SYMTAB, name, STT_TLS);
        let found = self.dynamic(name, STT_TLS).or_else(full);
        found.map(|range| range.start)
    }

    /// Returns the virtual address of the words by which code of a library finds the thread-local
    /// variable with this name: the number of the module, and the offset in its storage. Returns
    /// `None` if the code finds the variable in another way.
    pub fn thread_local_index(&self, name: &str) -> Option<u64> {
        /// Relocation that stores the number of a module (System V ABI for x86-64, section 4.4.1).
        const R_X86_64_DTPMOD64: u64 = 16;
        const RELOCATION_SIZE: usize = 24;
        let table = self.section_of_kind(SHT_GNU_HASH)?;
        let relocations = self.section(".rela.dyn")?;
        if relocations.size > SEARCH_LIMIT || !self.header().is_64_bit {
            return None;
        }
        let relocations = self.part(relocations, 0, relocations.size)?;
        relocations
            .chunks_exact(RELOCATION_SIZE)
            .map(Fields)
            .filter(|entry| entry.u64(8) & 0xffff_ffff == R_X86_64_DTPMOD64)
            .find_map(|entry| {
                let symbol = entry.u64(8) >> 32;
                self.dynamic_symbol(table, symbol, name.as_bytes(), STT_TLS)?;
                Some(entry.u64(0))
            })
    }

    fn dynamic(&self, name: &[u8], kind: u8) -> Option<Range<u64>> {
        let is_64_bit = self.header().is_64_bit;
        match self.section_of_kind(SHT_GNU_HASH) {
            Some(table) if is_64_bit => self.by_hash(table, name, kind),
            _ => self.in_order(SHT_DYNSYM, name, kind),
        }
    }

    /// Returns the `size` bytes at a virtual address as they are after loading; `None` if the file
    /// lacks some of them.
    pub fn initial_bytes(&self, address: u64, size: u64) -> Option<Vec<u8>> {
        let offset = self.segments().offset(address, size)?;
        let is_accepted = size <= VARIABLE_LIMIT;
        is_accepted.then(|| self.bytes("variable", offset, size).ok())?
    }

    /// Calls `visit` with every symbol that the file defines, and with the beginning of its name.
    fn for_each_symbol(&self, kind: u32, visit: impl FnMut(&Symbol, &[u8])) {
        if let Ok(Some(table)) = self.symbol_table(kind) {
            for_each_of(&table, visit);
        }
    }

    fn in_order(&self, table: u32, name: &[u8], kind: u8) -> Option<Range<u64>> {
        let mut found = None;
        self.for_each_symbol(table, |symbol, found_name| {
            if found.is_none() && symbol.kind() == kind && found_name == name {
                found = sized(symbol.range());
            }
        });
        found
    }

    /// Looks up a variable in `.gnu.hash`. The table has a Bloom filter, the first symbol of each
    /// bucket, and the hash of each symbol. The lowest bit of a hash marks the last symbol of a
    /// chain (<https://sourceware.org/gnu-gabi/program-loading-and-dynamic-linking.txt>).
    fn by_hash(&self, table: &Section, name: &[u8], kind: u8) -> Option<Range<u64>> {
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
                && let Some(range) = self.dynamic_symbol(table, symbol, name, kind)
            {
                return Some(range);
            }
            if found & 1 == 1 {
                break;
            }
        }
        None
    }

    /// Returns the addresses of the dynamic symbol with this index, if it has this name and type.
    fn dynamic_symbol(
        &self,
        table: &Section,
        index: u64,
        name: &[u8],
        kind: u8,
    ) -> Option<Range<u64>> {
        let section = |index: u32| self.sections().get(index as usize);
        let symbols = section(table.link)?;
        let size = SYMBOL_SIZE as u64;
        let symbol = Symbol::new(&self.part(symbols, index * size, size)?, true);
        let names = section(symbols.link)?;
        let found = self.part(names, symbol.name.into(), name.len() as u64 + 1)?;
        let is_named = found.split_last() == Some((&0, name));
        let is_meant = is_named && symbol.is_defined() && symbol.kind() == kind;
        is_meant.then(|| sized(symbol.range()))?
    }

    /// Reads `size` bytes of a section, beginning at the offset `at` within the section.
    fn part(&self, section: &Section, at: u64, size: u64) -> Option<Vec<u8>> {
        let within = at.checked_add(size)? <= section.size;
        let offset = section.offset.checked_add(at).filter(|_| within)?;
        self.bytes("symbols", offset, size).ok()
    }
}

/// Calls `visit` with every defined symbol of a table, and with the beginning of its name.
fn for_each_of<S: Source>(table: &SymbolTable<'_, S>, mut visit: impl FnMut(&Symbol, &[u8])) {
    if table.size() > SEARCH_LIMIT {
        return;
    }
    let names = table.names(SEARCH_LIMIT);
    let _ = table.for_each(|symbol| {
        if symbol.is_defined() {
            visit(&symbol, names.get(symbol.name));
        }
        Ok::<(), Error>(())
    });
}

fn sized(range: Range<u64>) -> Option<Range<u64>> {
    (!range.is_empty()).then_some(range)
}

/// Returns the hash of a name (`dl_new_hash` of glibc's elf/dl-lookup.c).
fn gnu_hash(name: &[u8]) -> u32 {
    name.iter().fold(5381, |hash: u32, &byte| {
        hash.wrapping_mul(33).wrapping_add(u32::from(byte))
    })
}
