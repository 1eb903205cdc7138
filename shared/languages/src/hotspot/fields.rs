//! Fields that classes declare: their names and offsets.

use super::heap::half_word;
use super::method::Numbers;
use super::tables::{Tables, read_word};
use crate::language::Pieces;

/// Maximum number of fields of a class that are searched.
const MAX_FIELDS: usize = 256;
/// Maximum bytes of a class's compressed fields.
const MAX_STREAM: usize = 8 << 10;
/// Words of a field in `InstanceKlass::_fields`: flags, name, type, value, and the offset.
const FIELD_WORDS: usize = 6;
/// `JVM_ACC_STATIC`, and the flag of a field that only the machine knows.
const STATIC: u32 = 8;
const INTERNAL: u32 = 0x400;

/// Way in which a class keeps its fields.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fields {
    /// Words of 16 bits: JDK 8 to 20.
    Words { fields: u16, count: u16 },
    /// Compressed numbers.
    Stream(u16),
}

impl Fields {
    /// Returns the way of this machine; `None` if the tables lack it.
    pub(super) fn new(tables: &Tables) -> Option<Fields> {
        let field = |name: &str| tables.offset(&[name]);
        Some(match field("InstanceKlass::_fields") {
            Some(fields) => Fields::Words {
                fields,
                count: field("InstanceKlass::_java_fields_count")?,
            },
            None => Fields::Stream(field("InstanceKlass::_fieldinfo_stream")?),
        })
    }

    /// Returns the index of the name and the offset of each field that `class` itself declares for
    /// each object. `number_base`: see [`Numbers`].
    pub(super) fn places(
        self,
        memory: &dyn Pieces,
        class: u64,
        number_base: u32,
    ) -> Option<Vec<(u32, u32)>> {
        match self {
            Fields::Words { fields, count } => {
                let array = read_word(memory, class.checked_add(fields.into())?)?;
                let count = half_word(memory, class.checked_add(count.into())?)? as u16;
                let count = usize::from(count).min(MAX_FIELDS);
                let bytes = memory.bytes(array.checked_add(4)?, 2 * FIELD_WORDS * count);
                Some(parse_words(&bytes))
            }
            Fields::Stream(stream) => {
                let array = read_word(memory, class.checked_add(stream.into())?)?;
                let length = half_word(memory, array)? as usize;
                let bytes = memory.bytes(array.checked_add(4)?, length.min(MAX_STREAM));
                parse_stream(&bytes, number_base)
            }
        }
    }
}

/// Returns the index of the name and the offset of each field, from the words of a class.
fn parse_words(bytes: &[u8]) -> Vec<(u32, u32)> {
    let (words, _) = bytes.as_chunks::<2>();
    let words: Vec<u32> = words
        .iter()
        .map(|word| u16::from_le_bytes(*word).into())
        .collect();
    let fields = words.chunks_exact(FIELD_WORDS);
    fields
        .filter_map(|field| match *field {
            [flags, name, _, _, low, high] if flags & (STATIC | INTERNAL) == 0 => {
                Some((name, (high << 16 | low) >> 2))
            }
            _ => None,
        })
        .collect()
}

/// Returns the index of the name and the offset of each field, from the compressed numbers of a
/// class (fieldInfo.hpp).
fn parse_stream(bytes: &[u8], number_base: u32) -> Option<Vec<(u32, u32)>> {
    /// Flags of a field with a further number: a value, a generic type, a group.
    const WITH_NUMBER: [u32; 3] = [1, 4, 16];
    let mut numbers = Numbers::new(bytes, number_base);
    let count = numbers.unsigned()? as usize;
    let _injected = numbers.unsigned()?;
    let mut fields = Vec::new();
    for _ in 0..count.min(MAX_FIELDS) {
        let name = numbers.unsigned()?;
        let _type = numbers.unsigned()?;
        let offset = numbers.unsigned()?;
        let access = numbers.unsigned()?;
        let flags = numbers.unsigned()?;
        for with_number in WITH_NUMBER {
            if flags & with_number != 0 {
                numbers.unsigned()?;
            }
        }
        if access & STATIC == 0 {
            fields.push((name, offset));
        }
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_their_offsets() {
        // A static field, an internal one, and one at offset 20 with name 7.
        let words: [u16; 18] = [8, 5, 0, 0, 40, 0, 0x400, 6, 0, 0, 40, 0, 2, 7, 9, 0, 81, 0];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(parse_words(&bytes), [(7, 20)]);
        // Two fields: a static one with a value, and one at offset 12 with name 3. Each byte
        // exceeds its number by 1.
        let stream = [3, 1, 2, 2, 17, 9, 2, 41, 4, 5, 13, 3, 1, 0];
        assert_eq!(parse_stream(&stream, 1), Some(vec![(3, 12)]));
        assert_eq!(parse_stream(&stream[..9], 1), None);
    }
}
