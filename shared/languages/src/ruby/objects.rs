//! Strings and arrays of Ruby (`RString` and `RArray`).

use super::Layout;
use crate::language::Pieces;

/// Maximum length of a string, in bytes.
const TEXT_LIMIT: u64 = 4096;

/// Type of an object, in its flags.
const TYPE: u64 = 0x1f;
const STRING: u64 = 5;
const ARRAY: u64 = 7;
/// `RUBY_FL_USER1`: the characters of a string are elsewhere; the elements of an array are not.
const FLAG_1: u64 = 0x2000;

const LENGTH: u64 = 16;
const POINTER: u64 = 24;
/// Length of an embedded string before 3.2, in its flags.
const SHORT_LENGTH_SHIFT: u32 = 14;
const SHORT_LENGTH: u64 = 0x1f;

const ARRAY_EMBEDDED: u64 = 16;
const ARRAY_POINTER: u64 = 32;

/// Reads the string at `address`; `None` if there is no string, or if it is too long.
pub(super) fn text(
    memory: &(impl Pieces + ?Sized),
    layout: &Layout,
    address: u64,
) -> Option<String> {
    let field = |offset: u64| word(memory, address.wrapping_add(offset));
    let flags = field(0)?;
    if flags & TYPE != STRING || !address.is_multiple_of(8) {
        return None;
    }
    let embedded = address.wrapping_add(layout.embedded.into());
    let (length, data) = if flags & FLAG_1 != 0 {
        (field(LENGTH)?, field(POINTER)?)
    } else if u64::from(layout.embedded) == LENGTH {
        (flags >> SHORT_LENGTH_SHIFT & SHORT_LENGTH, embedded)
    } else {
        (field(LENGTH)?, embedded)
    };
    if length > TEXT_LIMIT {
        return None;
    }
    let bytes = memory.bytes(data, length as usize);
    let is_whole = bytes.len() as u64 == length;
    is_whole.then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns whether the object at `address` is an array.
pub(super) fn is_array(memory: &(impl Pieces + ?Sized), address: u64) -> Option<bool> {
    Some(word(memory, address)? & TYPE == ARRAY)
}

/// Returns an element of the array at `address`.
pub(super) fn element(memory: &(impl Pieces + ?Sized), address: u64, index: u64) -> Option<u64> {
    let word_at = |at| word(memory, at);
    element_by(word_at, address, index)
}

/// Same as [`element`]. `word` returns the word at an address.
pub(super) fn element_by(
    mut word: impl FnMut(u64) -> Option<u64>,
    address: u64,
    index: u64,
) -> Option<u64> {
    let flags = word(address)?;
    if flags & TYPE != ARRAY {
        return None;
    }
    let elements = if flags & FLAG_1 != 0 {
        address.wrapping_add(ARRAY_EMBEDDED)
    } else {
        word(address.wrapping_add(ARRAY_POINTER))?
    };
    word(elements.wrapping_add(index.wrapping_mul(8)))
}

pub(super) fn word(memory: &(impl Pieces + ?Sized), address: u64) -> Option<u64> {
    let bytes = memory.bytes(address, 8);
    Some(u64::from_le_bytes(*bytes.first_chunk()?))
}
