//! Source lines and inlined functions, from debug information (DWARF).
//!
//! The profiled program may have made the file. Sections are therefore read with a bound. [`size`]
//! refuses debug information that would take addr2line too much time or memory.

pub(crate) mod coroutines;
mod size;
mod split;

use std::collections::HashMap;
use std::io::{Error, Result};
use std::path::Path;
use std::sync::Arc;

use addr2line::gimli::{Dwarf, DwarfSections, DwoId, EndianSlice, LittleEndian, SectionId};
use addr2line::{Context, LookupContinuation, LookupResult};

use crate::charged::{self, Elf};
use crate::frame::{Inlined, Source};
use crate::naming::demangle::demangle;
use crate::naming::files::symbols::Symbol;
use crate::naming::wanted::Wanted;
use coroutines::{Coroutine, Coroutines, path_of_closure};
use size::Count;
use split::{Skeleton, SplitFiles};

/// Kinds of source places that are looked up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sources {
    /// No source lines.
    #[default]
    None,
    /// The source line of each frame.
    Lines,
    /// The source line of each frame, and the functions inlined at its address.
    Inlined,
}

/// Maximum size of the decompressed debug information of one file, in bytes.
const MAX_BYTES: u64 = 1 << 29;
/// Maximum size of the decompressed debug information of one file that is read only to tell
/// coroutines from closures, in bytes. A megabyte takes 2 ms.
const MAX_BYTES_FOR_COROUTINES: u64 = 32 << 20;
/// Maximum number of functions inlined at one address.
const MAX_INLINED: usize = 64;
/// Maximum number of addresses that are looked up in one file. It equals the maximum number of
/// symbols.
const MAX_ADDRESSES: usize = 1 << 16;

/// Source place of an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// Source line in the function that the file's symbol names.
    pub(crate) source: Option<Source>,
    /// Functions inlined into that function at the address, outermost first.
    pub(crate) inlined: Arc<[Inlined]>,
    /// Kind of the function that the file's symbol names, if it is a coroutine.
    pub(crate) coroutine: Option<Coroutine>,
}

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// Returns whether a file has debug information.
pub(crate) fn has_debug_information(elf: &Elf<'_>) -> bool {
    elf.has_contents(".debug_info")
}

/// Returns the source places of the wanted addresses, in the order of the addresses. `symbols` has
/// their symbols in the same order. The program was mapped from `path`.
///
/// Without `sources`, only coroutines are looked up, in debug information of moderate size.
///
/// # Errors
/// The debug information cannot be read, or is invalid as a whole.
pub(crate) fn places(
    elf: &Elf<'_>,
    path: &Path,
    wanted: &Wanted,
    symbols: &[Option<Symbol>],
    sources: Sources,
) -> Result<Vec<Place>> {
    let allowance = elf.source().allowance;
    let max_bytes = match sources {
        Sources::None => MAX_BYTES_FOR_COROUTINES,
        Sources::Lines | Sources::Inlined => MAX_BYTES,
    };
    let mut room = max_bytes;
    let load = |id: SectionId| -> Result<Vec<u8>> {
        // Units contain their own addresses, which addr2line would otherwise read from
        // `.debug_aranges`. addr2line does not use the other sections in this list.
        if matches!(
            id,
            SectionId::DebugAranges
                | SectionId::DebugLoc
                | SectionId::DebugLocLists
                | SectionId::DebugMacinfo
                | SectionId::DebugMacro
                | SectionId::DebugNames
                | SectionId::DebugTypes
        ) {
            return Ok(Vec::new());
        }
        charged::check(allowance, elf.contents(id.name(), &mut room))
    };
    let sections = DwarfSections::load(load)?;
    let mut dwarf = sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian));
    let mut count = Count::new(max_bytes - room, wanted, allowance);
    // The program itself has lines. The line of the function that the symbol names is the place of
    // a call, if another function is inlined there; only the entries tell that.
    let skeletons = count.check(&mut dwarf)?;
    let files = SplitFiles::read(path, &skeletons, &mut room, allowance);
    let split = files.units(&dwarf, &skeletons, &mut count);
    let context = Context::from_dwarf(dwarf).map_err(Error::other)?;
    let mut looker = Looker {
        context,
        split,
        coroutines: Coroutines::default(),
        sources,
        texts: HashMap::new(),
    };
    let addresses = wanted.addresses().iter().enumerate();
    let places = addresses.map(|(index, &address)| {
        if index < MAX_ADDRESSES && allowance.check_time().is_ok() {
            let symbol = symbols.get(index).and_then(Option::as_ref);
            // Invalid debug information gives no place.
            looker.place(address, symbol).unwrap_or_default()
        } else {
            Place::default()
        }
    });
    if wanted.addresses().len() > MAX_ADDRESSES {
        let _ = allowance.refuse("too many of its addresses are asked for");
    }
    Ok(places.collect())
}

struct Looker<'a> {
    context: Context<Slice<'a>>,
    /// Entries of units that are in other files.
    split: HashMap<DwoId, Arc<Dwarf<Slice<'a>>>>,
    coroutines: Coroutines,
    sources: Sources,
    texts: HashMap<String, Arc<str>>,
}

impl<'a> Looker<'a> {
    fn place(&mut self, address: u64, symbol: Option<&Symbol>) -> Option<Place> {
        let coroutine = self.coroutine(address, symbol);
        if self.sources == Sources::None {
            return Some(Place {
                coroutine,
                ..Place::default()
            });
        }
        let frames = self.resolve(self.context.find_frames(address));
        let mut frames = frames.ok()?;
        let mut found = Vec::new();
        while let Some(frame) = frames.next().ok()? {
            if found.len() > MAX_INLINED {
                return None;
            }
            let source = frame.location.and_then(|location| {
                let line = location.line?;
                Some((location.file?.to_owned(), line))
            });
            let name = frame.function.and_then(|function| {
                let name = function.raw_name().ok()?;
                Some(name.into_owned())
            });
            found.push((name, source));
        }
        let (_, source) = found.pop()?;
        let source = source.map(|source| self.source(source));
        let inlined = match self.sources {
            Sources::Inlined => found,
            Sources::None | Sources::Lines => Vec::new(),
        };
        let inlined = inlined.into_iter().rev().map(|(name, source)| Inlined {
            source: source.map(|source| self.source(source)),
            ..self.named(address, name)
        });
        let inlined = inlined.collect();
        Some(Place {
            source,
            inlined,
            coroutine,
        })
    }

    /// Returns the function with this symbol, which is inlined at the address, without its source.
    fn named(&mut self, address: u64, raw: Option<String>) -> Inlined {
        let Some(raw) = raw else {
            return Inlined::default();
        };
        let mut name = demangle(&raw).into_owned();
        if path_of_closure(&name).is_some() {
            self.read_coroutines(address);
            let coroutine = self.coroutines.with_symbol(&raw);
            name = coroutine.and_then(|kind| kind.name(&name)).unwrap_or(name);
        }
        Inlined {
            system_name: (name != raw).then(|| self.text(raw)),
            name: Some(self.text(name)),
            source: None,
        }
    }

    /// Returns the kind of the function of the file's symbol, if it is a coroutine.
    fn coroutine(&mut self, address: u64, symbol: Option<&Symbol>) -> Option<Coroutine> {
        let symbol = symbol.filter(|symbol| path_of_closure(&symbol.name).is_some())?;
        self.read_coroutines(address);
        self.coroutines.of(symbol)
    }

    /// Reads the coroutines of the unit at the address.
    fn read_coroutines(&mut self, address: u64) {
        if let Some(unit) = self.resolve(self.context.find_dwarf_and_unit(address)) {
            self.coroutines.add(unit);
        }
    }

    /// Finishes a lookup with the units that are in other files.
    fn resolve<L>(&self, mut lookup: LookupResult<L>) -> L::Output
    where
        L: LookupContinuation<Buf = Slice<'a>>,
    {
        loop {
            match lookup {
                LookupResult::Output(output) => return output,
                LookupResult::Load { load, continuation } => {
                    let unit = self.split.get(&load.dwo_id);
                    lookup = continuation.resume(unit.cloned());
                }
            }
        }
    }

    fn source(&mut self, (file, line): (String, u32)) -> Source {
        let file = self.text(file);
        Source { file, line }
    }

    fn text(&mut self, text: String) -> Arc<str> {
        let new = |text: &String| Arc::from(text.as_str());
        let entry = self.texts.entry(text);
        Arc::clone(entry.or_insert_with_key(new))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::size::DEEPEST;
    use super::*;
    use crate::budget::Allowance;

    const UNIT: u8 = 1;
    const FUNCTION: u8 = 2;
    const INLINED: u8 = 3;
    const BLOCK: u8 = 4;
    const LAST_BLOCK: u8 = 5;
    /// Abbreviations. Each has its code, its tag, whether it has children, and its attributes and
    /// their forms: DW_AT_low_pc, DW_AT_high_pc as a size, DW_AT_linkage_name.
    const ABBREVIATIONS: [&[u8]; 5] = [
        &[UNIT, 0x11, 1, 0x11, 0x01, 0x12, 0x06, 0, 0],
        &[FUNCTION, 0x2e, 1, 0x11, 0x01, 0x12, 0x06, 0, 0],
        &[INLINED, 0x1d, 1, 0x11, 0x01, 0x12, 0x06, 0x6e, 0x08, 0, 0],
        &[BLOCK, 0x0b, 1, 0, 0],
        &[LAST_BLOCK, 0x0b, 0, 0, 0],
    ];

    /// Returns an entry that covers the 16 bytes from address 0x1000 on.
    fn placed(abbreviation: u8) -> Vec<u8> {
        let place = [&0x1000_u64.to_le_bytes()[..], &16_u32.to_le_bytes()].concat();
        [vec![abbreviation], place].concat()
    }

    /// Calls `question` with the debug information of one unit that has these entries.
    fn ask<T>(entries: &[u8], question: impl FnOnce(Dwarf<Slice<'_>>) -> T) -> T {
        // The header has the version, the offset of the abbreviations, and the size of addresses.
        let header = [4, 0, 0, 0, 0, 0, 8];
        let unit = [&header[..], &placed(UNIT), entries, &[0]].concat();
        let info = [&(unit.len() as u32).to_le_bytes()[..], &unit].concat();
        let load = |id: SectionId| -> Result<Vec<u8>> {
            Ok(match id {
                SectionId::DebugInfo => info.clone(),
                SectionId::DebugAbbrev => [&ABBREVIATIONS.concat()[..], &[0]].concat(),
                _ => Vec::new(),
            })
        };
        let sections = DwarfSections::load(load).unwrap();
        question(sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian)))
    }

    /// Returns the place of an address in a function. Functions with these names are inlined there,
    /// each into the one before it.
    fn place(inlined: &[&str]) -> Option<Place> {
        let inlined_entries = inlined
            .iter()
            .flat_map(|name| [placed(INLINED), [name.as_bytes(), b"\0"].concat()].concat());
        let mut entries = placed(FUNCTION);
        entries.extend(inlined_entries);
        entries.extend(vec![0; inlined.len() + 1]);
        ask(&entries, |dwarf| {
            let mut looker = Looker {
                context: Context::from_dwarf(dwarf).unwrap(),
                split: HashMap::new(),
                coroutines: Coroutines::default(),
                sources: Sources::Inlined,
                texts: HashMap::new(),
            };
            looker.place(0x1008, None)
        })
    }

    #[test]
    fn inlined_functions_are_bounded() {
        let count = |count: usize| place(&vec!["f"; count]).map(|place| place.inlined.len());
        assert_eq!(count(MAX_INLINED), Some(MAX_INLINED));
        assert_eq!(count(MAX_INLINED + 1), None);
        assert_eq!(count(MAX_INLINED + 2), None);
    }

    #[test]
    fn entries_that_are_too_deep_in_others_are_not_followed() {
        let nest_little = |depth: isize| {
            let depth = depth as usize;
            let opened = vec![BLOCK; depth - 1];
            let entries = [opened, vec![LAST_BLOCK], vec![0; depth - 1]].concat();
            ask(&entries, |mut dwarf| {
                let wanted = Wanted::new(vec![0x1008]);
                let allowance = Allowance::alone();
                Count::new(0, &wanted, &allowance).check(&mut dwarf).is_ok()
            })
        };
        assert!(nest_little(1) && nest_little(DEEPEST));
        assert!(!nest_little(DEEPEST + 1) && !nest_little(DEEPEST + 2));
    }
}
