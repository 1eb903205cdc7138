//! Flags with which a virtual machine runs, such as `-XX:+UseZGC`.

use std::collections::HashMap;

use super::tables::{Tables, Texts, read_word};
use crate::language::Pieces;

/// Boolean flags of a virtual machine.
#[derive(Clone, Debug)]
pub(super) struct Flags(HashMap<String, bool>);

impl Flags {
    const NAMES: [&str; 7] = [
        "UseCompressedOops",
        "UseCompressedClassPointers",
        "UseCompactObjectHeaders",
        "UseObjectMonitorTable",
        "UseZGC",
        "ZGenerational",
        "UseShenandoahGC",
    ];
    /// Maximum number of flags. Machines have about 1,500.
    const MAX: usize = 8 << 10;
    /// Maximum bytes of a flag's entry, and of its name.
    const MAX_ENTRY: u16 = 128;
    const MAX_NAME: usize = 64;

    /// Reads the flags; `None` if the machine has none.
    pub(super) fn read(memory: &dyn Pieces, tables: &Tables) -> Option<Flags> {
        let owner = ["JVMFlag", "Flag"];
        let owner = owner.into_iter().find(|it| tables.size(it).is_some())?;
        let named = |field: &str| format!("{owner}::{field}");
        let start = read_word(memory, tables.address(&named("flags"))?)?;
        let count = read_word(memory, tables.address(&named("numFlags"))?)? as usize;
        let size = tables.size(owner).filter(|size| *size <= Self::MAX_ENTRY)?;
        let name_at = usize::from(tables.offset(&[&named("_name")])?);
        let address_at = usize::from(tables.offset(&[&named("_addr")])?);
        let bytes = memory.bytes(start, count.min(Self::MAX) * usize::from(size));
        let word =
            |entry: &[u8], at: usize| Some(u64::from_le_bytes(*entry.get(at..)?.first_chunk()?));
        let entries = bytes.chunks_exact(usize::from(size).max(1));
        let entries: Vec<(u64, u64)> = entries
            .filter_map(|entry| Some((word(entry, name_at)?, word(entry, address_at)?)))
            .filter(|(name, _)| *name != 0)
            .collect();
        let names = entries.iter().map(|(name, _)| *name).collect();
        let texts = Texts::read(memory, names)?;
        let mut found = HashMap::new();
        for (name, address) in entries {
            let Some(text) = texts.get(name).filter(|text| text.len() < Self::MAX_NAME) else {
                continue;
            };
            if Self::NAMES.contains(&text)
                && let Some(value) = memory.bytes(address, 1).first()
            {
                found.insert(text.to_owned(), *value != 0);
            }
        }
        Some(Flags(found))
    }

    /// Returns the value of a flag, if the machine has it.
    pub(super) fn get(&self, name: &str) -> Option<bool> {
        self.0.get(name).copied()
    }
}
