//! Objects in the memory of a process.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use process::ProcessMemory;

use super::functions::JsFunction;
use super::layout::Layout;
use super::scripts::Script;
use crate::reader::MemoryPieces;

/// Maximum number of entries of each table of [`State`].
const ENTRIES: usize = 64 << 10;

/// Results of earlier reads of a process.
#[derive(Default)]
pub(super) struct State {
    /// Types of objects by their maps.
    types: HashMap<u64, u16>,
    /// Scripts by their address, source and name.
    pub(super) scripts: HashMap<[u64; 3], Arc<Script>>,
    /// Number of lines of all scripts.
    pub(super) lines: usize,
    /// Functions by their address and checksum.
    pub(super) functions: HashMap<(u64, u32), Arc<JsFunction>>,
    /// Number of failed reads of the script of each function.
    pub(super) failed_reads: HashMap<(u64, u32), u32>,
    /// Maps of objects that contain instructions.
    pub(super) code_maps: HashSet<u64>,
}

/// Objects of a process. A reference to an object is its address plus 1.
pub(super) struct Heap<'a> {
    pub(super) memory: &'a ProcessMemory,
    pub(super) pieces: &'a mut MemoryPieces,
    pub(super) layout: &'static Layout,
    pub(super) state: &'a mut State,
}

/// Returns whether a word may be a reference to an object. Objects are aligned, and lie in the lower
/// half of the address space.
pub(super) fn is_object(word: u64) -> bool {
    const ALIGNMENT: u64 = 8;
    const LAST_BIT: u32 = 47;
    word % ALIGNMENT == 1 && word >> LAST_BIT == 0
}

/// Returns the number that a word stands for; `None` if it is a reference.
pub(super) fn small_integer(word: u64) -> Option<i32> {
    (word as u32 == 0).then_some((word >> 32) as i32)
}

/// Adds an entry unless the table is full.
pub(super) fn keep<K: Eq + std::hash::Hash, V>(table: &mut HashMap<K, V>, key: K, value: V) {
    if table.len() < ENTRIES {
        table.insert(key, value);
    }
}

impl Heap<'_> {
    /// Reads all of `length` bytes.
    pub(super) fn bytes(&mut self, address: u64, length: usize) -> Option<Vec<u8>> {
        self.pieces.bytes(self.memory, address, length)
    }

    /// Returns the word at an offset in an object.
    pub(super) fn word(&mut self, object: u64, offset: u64) -> Option<u64> {
        if !is_object(object) {
            return None;
        }
        let bytes = self.bytes((object - 1).wrapping_add(offset), 8)?;
        Some(u64::from_le_bytes(*bytes.first_chunk()?))
    }

    /// Returns the half word at an offset in an object.
    pub(super) fn half_word(&mut self, object: u64, offset: u64) -> Option<u32> {
        if !is_object(object) {
            return None;
        }
        let bytes = self.bytes((object - 1).wrapping_add(offset), 4)?;
        Some(u32::from_le_bytes(*bytes.first_chunk()?))
    }

    /// Returns the type of an object.
    pub(super) fn kind(&mut self, object: u64) -> Option<u16> {
        let map = self.word(object, 0)?;
        self.kind_of_map(map)
    }

    /// Returns the type of objects with this map.
    pub(super) fn kind_of_map(&mut self, map: u64) -> Option<u16> {
        const KIND: u64 = 12;
        if let Some(kind) = self.state.types.get(&map) {
            return Some(*kind);
        }
        let kind = self.half_word(map, KIND)? as u16;
        keep(&mut self.state.types, map, kind);
        Some(kind)
    }

    /// Reads an array of bytes.
    pub(super) fn byte_array(&mut self, object: u64) -> Option<Vec<u8>> {
        const MOST: i32 = 4 << 20;
        let kind = self.kind(object)?;
        let is_array = kind != 0 && self.layout.types.bytes.contains(&kind);
        let length = small_integer(self.word(object, LENGTH)?)?;
        if !is_array || !(0..=MOST).contains(&length) {
            return None;
        }
        self.bytes(object - 1 + DATA, length as usize)
    }
}

/// Offsets of the length and of the data in arrays.
pub(super) const LENGTH: u64 = 8;
pub(super) const DATA: u64 = 16;
