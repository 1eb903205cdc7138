//! Tables in which a virtual machine describes its types: `gHotSpotVMStructs` and its siblings.

use std::collections::HashMap;

use crate::language::Pieces;

/// Names of the variables that point to the tables, in the order of [`Addresses`].
pub(super) const VARIABLES: [&str; 2] = ["gHotSpotVMStructs", "gHotSpotVMTypes"];

/// Addresses of the variables in a process.
pub(super) type Addresses = [u64; VARIABLES.len()];

/// Sizes of the entries, which are the same in all versions (vmStructs.hpp).
const FIELD_BYTES: usize = 48;
const TYPE_BYTES: usize = 40;

/// Maximum number of entries of a table. Machines have about 1,500 fields.
const MAX_ENTRIES: usize = 16 << 10;
/// Maximum distance between the first and the last text, in bytes. All are constants of one file.
const MAX_TEXT: u64 = 32 << 20;
/// Maximum length of a text, in bytes.
const MAX_NAME: usize = 256;

/// Field of a type.
#[derive(Clone, Copy, Debug)]
enum Field {
    /// Offset in the type, in bytes.
    Offset(u64),
    /// Address of a static field.
    Address(u64),
}

/// Fields and types of a virtual machine.
#[derive(Debug, Default)]
pub(super) struct Tables {
    fields: HashMap<String, Field>,
    /// Types of fields, as the sources of the machine name them.
    types: HashMap<String, String>,
    sizes: HashMap<String, u64>,
}

impl Tables {
    /// Reads the tables; `None` if the memory has none.
    pub(super) fn read(memory: &dyn Pieces, addresses: Addresses) -> Option<Tables> {
        let [fields, types] = addresses;
        let fields = entries::<FIELD_BYTES>(memory, fields)?;
        let types = entries::<TYPE_BYTES>(memory, types)?;
        let names = (fields
            .iter()
            .flat_map(|entry| [word(entry, 0), word(entry, 8), word(entry, 16)]))
        .chain(types.iter().map(|entry| word(entry, 0)));
        let texts = Texts::read(memory, names.collect())?;
        let mut tables = Tables::default();
        for entry in &fields {
            let is_static = word(entry, 24) as u32 != 0;
            let field = if is_static {
                Field::Address(word(entry, 40))
            } else {
                Field::Offset(word(entry, 32))
            };
            if let (Some(of), Some(name)) = (texts.get(word(entry, 0)), texts.get(word(entry, 8))) {
                let name = format!("{of}::{name}");
                if let Some(kind) = texts.get(word(entry, 16)) {
                    tables.types.insert(name.clone(), kind.to_owned());
                }
                tables.fields.insert(name, field);
            }
        }
        for entry in &types {
            if let Some(name) = texts.get(word(entry, 0)) {
                tables.sizes.insert(name.to_owned(), word(entry, 32));
            }
        }
        Some(tables)
    }

    /// Returns the offset of a field, the first of these that exists.
    pub(super) fn offset(&self, names: &[&str]) -> Option<u16> {
        names.iter().find_map(|name| match self.fields.get(*name)? {
            Field::Offset(offset) => u16::try_from(*offset).ok(),
            Field::Address(_) => None,
        })
    }

    /// Returns the address of a static field.
    pub(super) fn address(&self, name: &str) -> Option<u64> {
        match self.fields.get(name)? {
            Field::Address(address) => Some(*address),
            Field::Offset(_) => None,
        }
    }

    /// Returns the type of a field.
    pub(super) fn type_of(&self, name: &str) -> Option<&str> {
        self.types.get(name).map(String::as_str)
    }

    /// Returns the size of a type, in bytes.
    pub(super) fn size(&self, name: &str) -> Option<u16> {
        u16::try_from(*self.sizes.get(name)?).ok()
    }
}

/// Reads the entries of the table to which the variable at `variable` points. An entry whose first
/// word is 0 ends the table.
fn entries<const N: usize>(memory: &dyn Pieces, variable: u64) -> Option<Vec<[u8; N]>> {
    const AT_ONCE: usize = 512;
    let table = read_word(memory, variable).filter(|table| *table != 0)?;
    let mut entries: Vec<[u8; N]> = Vec::new();
    while entries.len() < MAX_ENTRIES {
        let at = table.checked_add((entries.len() * N) as u64)?;
        let bytes = memory.bytes(at, AT_ONCE * N);
        let (read, _) = bytes.as_chunks::<N>();
        let count = read.iter().take_while(|entry| word(*entry, 0) != 0).count();
        entries.extend_from_slice(&read[..count]);
        if count < read.len() {
            return Some(entries);
        }
        if read.is_empty() {
            return None;
        }
    }
    None
}

/// Returns the word at an offset in an entry, or 0 if it has none.
fn word(entry: &[u8], offset: usize) -> u64 {
    let word = entry.get(offset..).and_then(|rest| rest.first_chunk());
    word.map_or(0, |word| u64::from_le_bytes(*word))
}

/// Reads a word of memory.
pub(super) fn read_word(memory: &dyn Pieces, address: u64) -> Option<u64> {
    let bytes = memory.bytes(address, 8);
    Some(u64::from_le_bytes(*bytes.first_chunk()?))
}

/// Constant texts of a file, read at once.
pub(super) struct Texts {
    start: u64,
    bytes: Vec<u8>,
}

impl Texts {
    pub(super) fn read(memory: &dyn Pieces, addresses: Vec<u64>) -> Option<Texts> {
        let known = || addresses.iter().copied().filter(|address| *address != 0);
        let (start, last) = (known().min()?, known().max()?);
        let length = last - start;
        if length > MAX_TEXT {
            return None;
        }
        let bytes = memory.bytes(start, length as usize + MAX_NAME);
        Some(Texts { start, bytes })
    }

    pub(super) fn get(&self, address: u64) -> Option<&str> {
        let offset = usize::try_from(address.checked_sub(self.start)?).ok()?;
        let rest = self.bytes.get(offset..)?;
        let length = rest.iter().take(MAX_NAME).position(|byte| *byte == 0)?;
        std::str::from_utf8(&rest[..length]).ok()
    }
}
