//! Names addresses in one ELF file.
//!
//! The symbol tables of the file are streamed past the wanted addresses. Symbols that cover a
//! wanted address go into a small ELF file in memory, the extract. blazesym reads only the extract,
//! for three reasons:
//! - blazesym maps the files that it reads. The owner of a profiled program can make that fatal.
//! - blazesym indexes all symbols of a file, which takes more memory than a profiler should.
//! - blazesym extends a symbol without a size up to the next symbol, and so names code that the
//!   symbol does not cover.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{Error, ErrorKind, Result, Write};
use std::os::fd::AsRawFd;
use std::sync::Arc;

use blazesym::symbolize::source::{Elf as Source, Source as AnySource};
use blazesym::symbolize::{Input, Symbolizer};
use elf::SymbolTable;
use elf::layout::{
    SHN_ABS, SHN_UNDEF, SHT_DYNSYM, SHT_STRTAB, SHT_SYMTAB, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE,
    STT_OBJECT, SYMBOL_SIZE,
};
use rustix::fs::MemfdFlags;

use crate::charged::{self, Charged, Elf};
use crate::naming::demangle::{LONGEST, demangle};
use crate::naming::wanted::Wanted;

/// Maximum number of symbols that cover a wanted address. Only a hostile file has more.
const MAX_SYMBOLS: usize = 1 << 16;
/// Maximum size of names that are read, and of names that are demangled, in bytes. Symbols may
/// share a long name, and short names may stand for long ones. After the maximum, names stay
/// mangled.
const MAX_NAMES: usize = 8 << 20;
/// Maximum number of names that are compared, among symbols that cover the same code.
const MAX_ALIASES: usize = 8;

/// Place of a name of a symbol, and facts that tell how good the name is.
#[derive(Clone, Copy)]
struct Alias {
    /// Index of the symbol table.
    table: usize,
    /// Offset among the names of the table, in bytes.
    name: u32,
    /// Type and binding, `st_info`.
    info: u8,
}

/// Symbol that covers an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Symbol {
    /// Demangled name.
    pub(crate) name: Arc<str>,
    /// Name in the file, if it differs.
    pub(crate) system_name: Option<Arc<str>>,
    /// First address of the function or variable; `None` if it is unknown. It is of the same kind
    /// as the covered address.
    pub(crate) start: Option<u64>,
}

/// Part of the code of a symbol that belongs to no other symbol.
struct Piece {
    begin: u64,
    size: u64,
    /// First address of the symbol.
    start: u64,
    aliases: Vec<Alias>,
}

/// Symbols that cover a wanted address, by address and size.
type Covering = BTreeMap<(u64, u64), Vec<Alias>>;

/// Names the functions at the wanted virtual addresses.
///
/// `separate` is the debug file, whose symbols have the same addresses as the file's.
///
/// # Errors
/// A symbol table cannot be read.
pub(crate) fn names<'f>(
    elf: &Elf<'f>,
    separate: Option<&Elf<'f>>,
    wanted: &Wanted,
) -> Result<Vec<Option<Symbol>>> {
    names_of(elf, separate, wanted, is_function)
}

/// Names the variables at the wanted virtual addresses, like [`names`].
///
/// # Errors
/// A symbol table cannot be read.
pub(crate) fn variables<'f>(
    elf: &Elf<'f>,
    separate: Option<&Elf<'f>>,
    wanted: &Wanted,
) -> Result<Vec<Option<Symbol>>> {
    names_of(elf, separate, wanted, is_variable)
}

fn names_of<'f>(
    elf: &Elf<'f>,
    separate: Option<&Elf<'f>>,
    wanted: &Wanted,
    is_meant: fn(&elf::Symbol) -> bool,
) -> Result<Vec<Option<Symbol>>> {
    let mut covering = Covering::new();
    let places = [
        (Some(elf), SHT_SYMTAB),
        (Some(elf), SHT_DYNSYM),
        (separate, SHT_SYMTAB),
    ];
    let mut tables = Vec::new();
    for (elf, kind) in places {
        let Some(elf) = elf else { continue };
        let table = charged::check(elf.source().allowance, elf.symbol_table(kind))?;
        if let Some(table) = table {
            collect(&table, tables.len(), wanted, is_meant, &mut covering)?;
            tables.push(table);
        }
    }
    // Stripped Go programs have the table that their runtime needs.
    if elf.section_of_kind(SHT_SYMTAB).is_none()
        && let Some(table) = elf.go_functions()
    {
        collect(&table, tables.len(), wanted, is_meant, &mut covering)?;
        tables.push(table);
    }
    let room = Cell::new(MAX_NAMES);
    let read = |alias: &Alias| {
        if room.get() == 0 {
            let allowance = elf.source().allowance;
            let _ = allowance.refuse("its functions have too long names");
            return None;
        }
        let name = tables.get(alias.table)?.name(alias.name)?;
        room.set(room.get().saturating_sub(name.len()));
        Some(name)
    };
    let pieces = disjoint(covering, wanted);
    let starts = pieces.iter().map(|piece| (piece.begin, piece.start));
    let starts: HashMap<u64, u64> = starts.collect();
    let symbols = pieces.iter().filter_map(|piece| {
        let name = best_name(&piece.aliases, read)?;
        Some((piece.begin, piece.size, name))
    });
    look_up(&extract(symbols)?, &starts, wanted)
}

fn collect(
    table: &SymbolTable<'_, Charged<'_>>,
    index: usize,
    wanted: &Wanted,
    is_meant: fn(&elf::Symbol) -> bool,
    covering: &mut Covering,
) -> Result<()> {
    table.for_each(|symbol| {
        if !is_meant(&symbol) || wanted.covered(symbol.address, symbol.size).is_empty() {
            return Ok(());
        }
        if covering.len() >= MAX_SYMBOLS {
            return Err(Error::new(ErrorKind::InvalidData, "too many symbols"));
        }
        let aliases = covering.entry((symbol.address, symbol.size)).or_default();
        if aliases.len() < MAX_ALIASES {
            aliases.push(Alias {
                table: index,
                name: symbol.name,
                info: symbol.info,
            });
        }
        Ok(())
    })
}

/// Cuts symbols so that no two cover the same code. Leaves out symbols without a wanted address.
///
/// Of the symbols before an address, blazesym tries those with the last beginning, shortest first.
/// If thousands of symbols had the same beginning, blazesym would try all of them for each address.
/// A symbol therefore keeps only the code from the end of a shorter symbol with the same beginning
/// up to the beginning of the next symbol.
fn disjoint(covering: Covering, wanted: &Wanted) -> Vec<Piece> {
    let starts: Vec<u64> = covering.keys().map(|(start, _)| *start).collect();
    let mut pieces = Vec::new();
    let mut reached = 0;
    for ((start, size), aliases) in covering {
        let next = starts.partition_point(|other| *other <= start);
        let next = starts.get(next).copied().unwrap_or(u64::MAX);
        let (begin, end) = (start.max(reached), next.min(start + size));
        let size = end.saturating_sub(begin);
        if !wanted.covered(begin, size).is_empty() {
            pieces.push(Piece {
                begin,
                size,
                start,
                aliases,
            });
        }
        reached = reached.max(end);
    }
    pieces
}

/// Returns whether a symbol defines the code of a function. A symbol of hand-written assembly may
/// have a size and no type.
fn is_function(symbol: &elf::Symbol) -> bool {
    matches!(symbol.kind(), STT_NOTYPE | STT_FUNC | STT_GNU_IFUNC) && has_place(symbol)
}

/// Returns whether a symbol defines the memory of a variable.
fn is_variable(symbol: &elf::Symbol) -> bool {
    symbol.kind() == STT_OBJECT && has_place(symbol)
}

fn has_place(symbol: &elf::Symbol) -> bool {
    symbol.size > 0
        && symbol.address.checked_add(symbol.size).is_some()
        && !matches!(symbol.section, SHN_UNDEF | SHN_ABS)
}

/// Returns the name that a programmer would expect: `read` rather than `__read`, and a global
/// rather than a local name.
fn best_name(aliases: &[Alias], name: impl Fn(&Alias) -> Option<String>) -> Option<String> {
    let names = aliases.iter().filter_map(|alias| {
        let mut name = name(alias)?;
        // The version in `read@@GLIBC_2.2.5` is not part of the name.
        if let Some(version) = name.find('@').filter(|&at| at > 0) {
            name.truncate(version);
        }
        let underscores = name.len() - name.trim_start_matches('_').len();
        let mangled = name.starts_with("_Z") || name.starts_with("_R");
        let local = alias.info >> 4 == 0;
        let rank = if mangled { 0 } else { underscores };
        Some((rank, local, name.len(), name))
    });
    names.min().map(|(.., name)| name)
}

/// Writes these symbols, which are in ascending order, into an ELF file in memory.
fn extract(symbols: impl Iterator<Item = (u64, u64, String)>) -> Result<File> {
    /// Offset of the symbol table, after the header and four section headers, in bytes.
    const TABLE_AT: usize = 5 * 64;
    const SECTION_NAMES: &[u8] = b"\0.symtab\0.strtab\0.shstrtab\0";
    let mut table = vec![0; SYMBOL_SIZE];
    let mut names = vec![0];
    for (address, size, name) in symbols {
        table.extend((names.len() as u32).to_le_bytes());
        table.extend([0x12, 0, 1, 0]); // a global function of section 1
        table.extend(address.to_le_bytes());
        table.extend(size.to_le_bytes());
        names.extend(name.as_bytes());
        names.push(0);
    }
    let names_at = TABLE_AT + table.len();
    let section_names_at = names_at + names.len();

    let mut headers = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    headers.extend([3, 0, 62, 0, 1, 0, 0, 0]); // ET_DYN, EM_X86_64, version
    headers.extend([0; 16]); // no entry point, no segments
    headers.extend([64, 0, 0, 0, 0, 0, 0, 0]); // offset of the section headers
    headers.extend([0, 0, 0, 0, 64, 0, 0, 0, 0, 0, 64, 0, 4, 0, 3, 0]);
    headers.extend([0; 64]); // the first section is empty
    let mut section = |name: u32, kind: u32, at: usize, size: usize, link: u32, entry: u64| {
        for word in [name, kind] {
            headers.extend(word.to_le_bytes());
        }
        for word in [0, 0, at as u64, size as u64] {
            headers.extend(word.to_le_bytes());
        }
        for word in [link, 0] {
            headers.extend(word.to_le_bytes());
        }
        for word in [8, entry] {
            headers.extend(word.to_le_bytes());
        }
    };
    section(1, SHT_SYMTAB, TABLE_AT, table.len(), 2, SYMBOL_SIZE as u64);
    section(9, SHT_STRTAB, names_at, names.len(), 0, 0);
    section(17, SHT_STRTAB, section_names_at, SECTION_NAMES.len(), 0, 0);

    let mut file = File::from(rustix::fs::memfd_create("symbols", MemfdFlags::CLOEXEC)?);
    for part in [&headers[..], &table, &names, SECTION_NAMES] {
        file.write_all(part)?;
    }
    Ok(file)
}

/// Names the wanted addresses with blazesym. `starts` maps the start of a piece in the extract to
/// the first address of its symbol.
fn look_up(
    extract: &File,
    starts: &HashMap<u64, u64>,
    wanted: &Wanted,
) -> Result<Vec<Option<Symbol>>> {
    let mut source = Source::new(format!("/proc/self/fd/{}", extract.as_raw_fd()));
    source.debug_syms = false;
    let symbolizer = Symbolizer::builder()
        .enable_demangling(false)
        .enable_code_info(false)
        .enable_inlined_fns(false)
        .build();
    let found = symbolizer
        .symbolize(
            &AnySource::Elf(source),
            Input::VirtOffset(wanted.addresses()),
        )
        .map_err(Error::other)?;
    // Pieces do not overlap, so their beginnings differ.
    let mut demangled: HashMap<u64, Symbol> = HashMap::new();
    let mut room = MAX_NAMES;
    let names = found.iter().map(|symbol| {
        let symbol = symbol.as_sym()?;
        let symbol = demangled.entry(symbol.addr).or_insert_with(|| {
            let name = match room {
                0 => Cow::Borrowed(&*symbol.name),
                _ => demangle(&symbol.name),
            };
            room = room.saturating_sub(match &name {
                // A name that is still mangled may have exceeded this length.
                Cow::Borrowed(name) if name.starts_with("_Z") => LONGEST,
                name => name.len(),
            });
            Symbol {
                system_name: (name != symbol.name).then(|| symbol.name.as_ref().into()),
                name: name.into(),
                start: starts.get(&symbol.addr).copied(),
            }
        });
        Some(symbol.clone())
    });
    Ok(names.collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn names_that_take_long_to_demangle_use_up_the_room() {
        let last_after = |name: &str| {
            let many = (MAX_NAMES / LONGEST) as u64;
            let symbols = (0..many).map(|at| (at * 16, 16, format!("{name}{at}")));
            let last = (many * 16, 16, "_ZN3foo3barEv".to_owned());
            let wanted = Wanted::new((0..=many).map(|at| at * 16).collect());
            let extract = extract(symbols.chain([last])).unwrap();
            let mut names = look_up(&extract, &HashMap::new(), &wanted).unwrap();
            names.pop().flatten().unwrap().name
        };
        assert_eq!(&*last_after("plain"), "foo::bar()");
        assert_eq!(&*last_after("_Zunknown"), "_ZN3foo3barEv");
    }

    #[test]
    fn the_plainest_alias_is_the_name() {
        const LOCAL: u8 = 0x02;
        const GLOBAL: u8 = 0x12;
        let best = |names: &[(&str, u8)]| {
            let alias = |(index, (_, info)): (usize, &(&str, u8))| Alias {
                table: 0,
                name: index as u32,
                info: *info,
            };
            let aliases: Vec<_> = names.iter().enumerate().map(alias).collect();
            best_name(&aliases, |alias| {
                Some(names[alias.name as usize].0.to_owned())
            })
        };
        for (names, expected) in [
            (&["__GI___read", "__read", "read@@GLIBC_2.2.5"][..], "read"),
            (&["__GI___read", "__read"], "__read"),
            (&["__read", "_Z4readv"], "_Z4readv"),
            (&["__a", "longer"], "longer"),
            (&["_aaaa", "aaaaaa"], "aaaaaa"),
            // A mangled name begins with an underscore that is part of the language's mangling.
            (&["_Z1av", "a_longer"], "_Z1av"),
            (&["_RNvC1a1b", "a_longer_one"], "_RNvC1a1b"),
            (&["@@ONLY"], "@@ONLY"),
        ] {
            let names: Vec<_> = names.iter().map(|name| (*name, GLOBAL)).collect();
            assert_eq!(best(&names).as_deref(), Some(expected));
        }
        let local_and_global = [("aa", LOCAL), ("bbb", GLOBAL)];
        assert_eq!(best(&local_and_global).as_deref(), Some("bbb"));
        assert_eq!(best(&[]), None);
    }
}
