//! Strings of CPython: `PyASCIIObject`, `PyCompactUnicodeObject`, and the data after them (PEP
//! 393).

use super::{Layout, Pieces};

/// Maximum number of characters in a string.
const MOST: u64 = 4096;

const LENGTH: usize = 16;
const STATE: usize = 32;
const HEADER: usize = 40;

/// Reads the string at `address`. Returns `None` if there is no string, if the string is not
/// compact, or if it has more than [`MOST`] characters. Code points that are no characters become
/// U+FFFD. Undecodable bytes in file names are such code points.
pub(crate) fn read(
    memory: &(impl Pieces + ?Sized),
    layout: &Layout,
    address: u64,
) -> Option<String> {
    let header = memory.bytes(address, HEADER);
    let length = u64::from_le_bytes(*header.get(LENGTH..)?.first_chunk()?);
    let state = u32::from_le_bytes(*header.get(STATE..)?.first_chunk()?);
    let (width, is_compact, is_ascii) = (state >> 2 & 7, state >> 5 & 1 == 1, state >> 6 & 1 == 1);
    let accepted =
        is_compact && length <= MOST && matches!((width, is_ascii), (1, _) | (2 | 4, false));
    if !accepted {
        return None;
    }
    let data = if is_ascii {
        layout.ascii_data
    } else {
        layout.other_data
    };
    let width = width as usize;
    let size = length as usize * width;
    let bytes = memory.bytes(address.wrapping_add(u64::from(data)), size);
    let whole = bytes.len() == size;
    whole.then(|| bytes.chunks_exact(width).map(character).collect())
}

/// Decodes a character from its bytes, lowest byte first.
fn character(bytes: &[u8]) -> char {
    let number = bytes.iter().rev();
    let number = number.fold(0, |number, &byte| number << 8 | u32::from(byte));
    char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use process::ProcessMemory;

    use super::*;
    use crate::python::LAYOUTS;

    /// Returns the bytes of a string in memory. The data begin at offset `at`.
    fn object(length: u64, state: u32, at: u16, data: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0xaa; usize::from(at)];
        bytes[LENGTH..LENGTH + 8].copy_from_slice(&length.to_le_bytes());
        bytes[STATE..STATE + 4].copy_from_slice(&state.to_le_bytes());
        bytes.extend(data);
        bytes
    }

    fn state(width: u32, is_ascii: bool) -> u32 {
        // The other bits may have any value.
        0xffff_ff83 | width << 2 | 1 << 5 | u32::from(is_ascii) << 6
    }

    #[test]
    fn strings_of_each_width_are_read() {
        let memory = ProcessMemory::new(std::process::id());
        for layout in LAYOUTS {
            let (ascii, other) = (layout.ascii_data, layout.other_data);
            for (bytes, expected) in [
                (object(3, state(1, true), ascii, b"abcd"), Some("abc")),
                (object(0, state(1, true), ascii, b""), Some("")),
                (object(2, state(1, false), other, b"\xe9a"), Some("éa")),
                (
                    object(3, state(2, false), other, &[0x0d, 0x54, 0xff, 0xdc, 9, 0]),
                    Some("名\u{fffd}\t"),
                ),
                (
                    object(2, state(4, false), other, &[0, 0, 2, 0, 0, 0, 0x11, 0]),
                    Some("𠀀\u{fffd}"),
                ),
                // These widths do not exist.
                (object(1, state(0, false), other, b"abcd"), None),
                (object(1, state(3, false), other, b"abcd"), None),
                (object(1, state(7, false), other, b"abcd"), None),
                (object(1, state(2, true), ascii, b"abcd"), None),
                (object(1, state(1, true) & !0x20, ascii, b"abcd"), None),
                (object(MOST + 1, state(1, true), ascii, &[b'a'; 5000]), None),
                (object(u64::MAX, state(4, false), other, b"abcd"), None),
            ] {
                let read = read(&memory, layout, bytes.as_ptr() as u64);
                assert_eq!(read.as_deref(), expected, "3.{}", layout.minor);
            }
            let most = object(MOST, state(1, true), ascii, &[b'a'; 4096]);
            let read = read(&memory, layout, most.as_ptr() as u64);
            assert_eq!(read.map(|text| text.len()), Some(4096));
        }
        assert_eq!(read(&memory, &LAYOUTS[0], 0), None);
        assert_eq!(read(&memory, &LAYOUTS[0], u64::MAX - 10), None);
    }
}
