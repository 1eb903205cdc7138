//! Names of variables.

use std::io::Result;

use crate::charged::Elf;
use crate::naming::files::symbols::{self, Symbol};
use crate::naming::wanted::Wanted;

/// Place of a program's data, in a form that outlives the process: a distance from code of a file.
/// The data have the same distance from the code in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Data {
    /// Index of the file.
    pub(crate) file: u32,
    /// Offset of the code in the file, in bytes.
    pub(crate) code: u64,
    /// Distance from the code to the data, in bytes.
    pub(crate) distance: u64,
}

/// Variable at an address of a program's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Demangled name of the symbol that covers the address.
    pub symbol: Option<String>,
    /// Offset in the symbol, in bytes. Without a symbol, the virtual address in the file.
    pub offset: u64,
    /// Name of the file.
    pub module: String,
}

/// Finds the symbols for data of a file, and the data's virtual addresses in the file. Leaves out
/// addresses outside of the file's data.
///
/// # Errors
/// A symbol table cannot be read.
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
        // A symbol with an unknown start cannot be distinguished from another symbol.
        let symbol = symbol.filter(|symbol| symbol.start.is_some_and(|start| start <= address));
        (data, address, symbol)
    });
    Ok(found.collect())
}
