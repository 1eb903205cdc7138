//! Names and source lines from ELF files.

pub(crate) mod debug_files;
pub(crate) mod sources;
pub(crate) mod symbols;
pub(crate) mod variables;

use std::collections::HashMap;
use std::io::Result;
use std::path::Path;

use crate::charged::Elf;
use crate::naming::files::sources::coroutines::path_of_closure;
use crate::naming::files::sources::{Place, Sources, has_debug_information, places};
use crate::naming::files::symbols::Symbol;
use crate::naming::wanted::Wanted;

/// Symbol and source place for an offset in a file.
pub(crate) struct Found {
    /// Virtual address of the offset.
    pub(crate) address: u64,
    /// Symbol that covers the address.
    pub(crate) symbol: Option<Symbol>,
    /// Source place from the debug information.
    pub(crate) place: Place,
}

/// Finds symbols and source places for offsets in a file that was mapped from `path`. Leaves out offsets that the file does not
/// load as code.
///
/// # Errors
/// A symbol table cannot be read.
pub(crate) fn find_at_offsets<'f>(
    elf: &Elf<'f>,
    separate: Option<&Elf<'f>>,
    path: &Path,
    offsets: &[u64],
    sources: Sources,
) -> Result<HashMap<u64, Found>> {
    // Only the headers of the file itself show its mappings. The headers of its debug file do not.
    let addresses = offsets
        .iter()
        .filter_map(|&offset| Some((offset, elf.segments().address(offset)?)));
    let addresses: Vec<_> = addresses.collect();
    let wanted = Wanted::new(addresses.iter().map(|&(_, address)| address).collect());
    let symbols = symbols::names(elf, separate, &wanted)?;
    let debug = [Some(elf), separate].into_iter().flatten();
    let has_closures = symbols
        .iter()
        .flatten()
        .any(|symbol| path_of_closure(&symbol.name).is_some());
    let is_read = sources != Sources::None || has_closures;
    let mut debug = debug.filter(|elf| is_read && has_debug_information(elf));
    // If the debug information is invalid, symbols can still be found.
    let places = debug
        .next_back()
        .map(|elf| places(elf, path, &wanted, &symbols, sources));
    let places = places.and_then(Result::ok).unwrap_or_default();
    let found = addresses.into_iter().map(|(offset, address)| {
        let index = wanted.first_from(address);
        let mut found = Found {
            address,
            symbol: symbols.get(index).cloned().flatten(),
            place: places.get(index).cloned().unwrap_or_default(),
        };
        if let (Some(symbol), Some(coroutine)) = (&mut found.symbol, found.place.coroutine)
            && let Some(name) = coroutine.name(&symbol.name)
        {
            symbol.name = name.into();
        }
        (offset, found)
    });
    Ok(found.collect())
}
