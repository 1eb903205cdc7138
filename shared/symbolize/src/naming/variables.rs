//! Where a program's variables are, and what they are called.

use std::collections::HashMap;
use std::io::Result;

use crate::Symbolizer;
use crate::elf::{Elf, SHT_SYMTAB};
use crate::naming::debug_files;
use crate::naming::symbols::{self, Symbol};
use crate::naming::wanted::Wanted;
use crate::process::images::Image;
use process::Process;

/// Where data of a program may be, in terms that outlive its process: behind code of a
/// file, as far from there as the file itself says its data are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Data {
    /// Which file.
    file: u32,
    /// The offset in it of the code, in bytes.
    code: u64,
    /// How far from the code, in bytes.
    distance: u64,
}

/// What is at an address of a program's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The symbol that covers it, demangled.
    pub symbol: Option<String>,
    /// How far into that, in bytes; without a symbol the address as the file has it.
    pub offset: u64,
    /// The name of the file.
    pub module: String,
}

impl Symbolizer {
    /// Locates an address of a process's data, while the process is there.
    pub fn locate_data(&mut self, process: Process, address: u64) -> Option<Data> {
        let mapping = self.code_before(process, address)?;
        match mapping.image {
            Image::File(file) => Some(Data {
                file,
                code: mapping.offset,
                distance: address - mapping.start,
            }),
            _ => None,
        }
    }

    /// Names what was located, every file's in one go. What is in no file's data is left out.
    pub fn variables(&mut self, located: impl Iterator<Item = Data>) -> HashMap<Data, Variable> {
        let mut files: HashMap<u32, Vec<Data>> = HashMap::new();
        for data in located {
            files.entry(data.file).or_default().push(data);
        }
        let mut variables = HashMap::new();
        let pids = self.processes.pids();
        for file in self.images.by_size(files.keys().copied()) {
            let located = files.remove(&file).unwrap_or_default();
            let Some(mapped) = self.images.file(file) else {
                continue;
            };
            let module = mapped.module.name.to_string();
            let allowance = self
                .budget
                .allow(pids.get(&file).map_or(&[], Vec::as_slice));
            let read = Elf::read(&mapped.file, &allowance).and_then(|elf| {
                let separate = match elf.has(SHT_SYMTAB) {
                    true => None,
                    // The names of functions in it say so if it cannot be read.
                    false => debug_files::find(&elf, &mapped.path, &self.debug_directories)
                        .unwrap_or_default(),
                };
                let separate = separate
                    .as_ref()
                    .and_then(|file| Elf::read(file, &allowance).ok());
                find(&elf, separate.as_ref(), &located)
            });
            let is_left_out = self.settle(&allowance, &module);
            match read {
                Ok(found) => variables.extend(found.into_iter().map(|(data, address, symbol)| {
                    let start = symbol.as_ref().and_then(|symbol| symbol.start);
                    let variable = Variable {
                        symbol: symbol.map(|symbol| symbol.name.to_string()),
                        offset: address - start.unwrap_or(0),
                        module: module.clone(),
                    };
                    (data, variable)
                })),
                Err(_) if is_left_out => {}
                Err(error) => self.losses.note(&module, error),
            }
        }
        variables
    }
}

/// What is located in a file's data, with the addresses that the file has for it.
fn find(
    elf: &Elf<'_>,
    separate: Option<&Elf<'_>>,
    located: &[Data],
) -> Result<Vec<(Data, u64, Option<Symbol>)>> {
    let placed = located.iter().filter_map(|data| {
        let address = elf.mapped_address(data.code)?.checked_add(data.distance)?;
        elf.has_data(address).then_some((*data, address))
    });
    let placed: Vec<(Data, u64)> = placed.collect();
    let wanted = Wanted::new(placed.iter().map(|(_, address)| *address).collect());
    let symbols = symbols::variables(elf, separate, &wanted)?;
    let found = placed.into_iter().map(|(data, address)| {
        let symbol = symbols.get(wanted.first_from(address)).cloned().flatten();
        // One whose beginning is not known is not told from another.
        let symbol = symbol.filter(|symbol| symbol.start.is_some_and(|start| start <= address));
        (data, address, symbol)
    });
    Ok(found.collect())
}
