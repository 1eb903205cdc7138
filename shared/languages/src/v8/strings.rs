//! Strings. A string is a sequence of characters of one or two bytes, or refers to other strings.

use super::heap::{Heap, is_object, small_integer};

/// First type that is no string.
const FIRST_OTHER: u16 = 128;
/// Bits of a string's type: its representation, and whether characters have one byte.
const REPRESENTATION: u16 = 7;
const ONE_BYTE: u16 = 8;

/// Offsets in strings. All representations use the same words for their fields.
const LENGTH: u64 = 12;
const FIRST: u64 = 16;
const SECOND: u64 = 24;

/// Maximum number of strings that one string consists of.
const PARTS: usize = 1000;

/// Part of a string whose characters are in sequence in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Characters {
    pub(super) address: u64,
    /// Number of characters.
    pub(super) length: u64,
    /// Size of a character, in bytes.
    pub(super) width: u64,
}

impl Heap<'_> {
    /// Reads a string of at most `most` characters. Halves of characters become U+FFFD.
    pub(super) fn string(&mut self, object: u64, most: u64) -> Option<String> {
        let mut units: Vec<u16> = Vec::new();
        for part in self.parts(object)? {
            if units.len() as u64 + part.length > most {
                return None;
            }
            let bytes = self.bytes(part.address, (part.length * part.width) as usize)?;
            if part.width == 1 {
                units.extend(bytes.iter().copied().map(u16::from));
            } else {
                let (pairs, _) = bytes.as_chunks();
                units.extend(pairs.iter().map(|pair| u16::from_le_bytes(*pair)));
            }
        }
        Some(String::from_utf16_lossy(&units))
    }

    /// Returns the parts of a string, from first to last.
    pub(super) fn parts(&mut self, object: u64) -> Option<Vec<Characters>> {
        let mut parts = Vec::new();
        // Strings that are still to be read, the next one last. Each has the range of the
        // characters that are wanted; no end means up to its own end.
        let mut waiting = vec![(object, 0, None)];
        let mut read = 0;
        while let Some((object, skipped, wanted)) = waiting.pop() {
            read += 1;
            if read > PARTS {
                return None;
            }
            let kind = self.kind(object).filter(|kind| *kind < FIRST_OTHER)?;
            let own = u64::from(self.half_word(object, LENGTH)?);
            let length = wanted.unwrap_or(own.checked_sub(skipped)?);
            if skipped + length > own {
                return None;
            }
            let width = if kind & ONE_BYTE == 0 { 2 } else { 1 };
            let characters = |start: u64| Characters {
                address: start.wrapping_add(skipped * width),
                length,
                width,
            };
            match kind & REPRESENTATION {
                // Sequential.
                0 => parts.push(characters(object - 1 + FIRST)),
                // Two strings, one behind the other.
                1 if skipped == 0 && length == own => {
                    let first = self.word(object, FIRST)?;
                    let second = self.word(object, SECOND)?;
                    waiting.push((second, 0, None));
                    waiting.push((first, 0, None));
                }
                // External: the characters are outside of the heap.
                2 => parts.push(characters(self.word(object, SECOND)?)),
                // Part of another string.
                3 => {
                    let offset = small_integer(self.word(object, SECOND)?)?;
                    let offset = u64::try_from(offset).ok()?;
                    let parent = self.word(object, FIRST)?;
                    waiting.push((parent, offset + skipped, Some(length)));
                }
                // Reference to an equal string.
                5 => waiting.push((self.word(object, FIRST)?, skipped, Some(length))),
                _ => return None,
            }
        }
        Some(parts)
    }

    /// Returns whether an object is a string.
    pub(super) fn is_string(&mut self, object: u64) -> bool {
        is_object(object) && self.kind(object).is_some_and(|kind| kind < FIRST_OTHER)
    }
}
