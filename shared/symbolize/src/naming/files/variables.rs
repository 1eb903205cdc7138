//! Names of variables.

use std::io::Result;

use crate::charged::Elf;
use crate::naming::files::symbols::{self, Symbol};
use crate::naming::wanted::Wanted;

/// Place of data of a program, in terms that outlive its process: a distance from code of a file.
/// The file has its data at the same distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Data {
    /// Index of the file.
    pub(crate) file: u32,
    /// Offset of the code in the file, in bytes.
    pub(crate) code: u64,
    /// Distance from the code, in bytes.
    pub(crate) distance: u64,
}

/// Variable at an address of a program's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Demangled symbol that covers the address.
    pub symbol: Option<String>,
    /// Offset in the symbol, in bytes. Without a symbol it is the virtual address in the file.
    pub offset: u64,
    /// Name of the file.
    pub module: String,
}

/// Finds the symbols of data of a file, with the virtual addresses of the data in the file.
/// Addresses outside of the file's data are left out.
///
/// # Errors
/// If a symbol table cannot be read.
pub(crate) fn find<'f>(
    elf: &Elf<'f>,
    separate: Option<&Elf<'f>>,
    located: &[Data],
) -> Result<Vec<(Data, u64, Option<Symbol>)>> {
    let placed = located.iter().filter_map(|data| {
        let address = elf
            .segments()
            .mapped_address(data.code)?
            .checked_add(data.distance)?;
        elf.segments().has_data(address).then_some((*data, address))
    });
    let placed: Vec<(Data, u64)> = placed.collect();
    let wanted = Wanted::new(placed.iter().map(|(_, address)| *address).collect());
    let symbols = symbols::variables(elf, separate, &wanted)?;
    let found = placed.into_iter().map(|(data, address)| {
        let symbol = symbols.get(wanted.first_from(address)).cloned().flatten();
        // A symbol whose beginning is not known cannot be distinguished from another.
        let symbol = symbol.filter(|symbol| symbol.start.is_some_and(|start| start <= address));
        (data, address, symbol)
    });
    Ok(found.collect())
}
