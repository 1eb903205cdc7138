//! Names in a virtual machine: `Symbol`s, whose text is modified UTF-8 (JVM specification, section
//! 4.4.7).

use super::layout::Machine;
use crate::language::Pieces;

/// Maximum length of a name, in bytes. The virtual machine allows 65,535.
const MAX_BYTES: u16 = 4096;

/// Reads the symbol at `address`.
pub(super) fn read(
    memory: &(impl Pieces + ?Sized),
    machine: &Machine,
    address: u64,
) -> Option<String> {
    let length = address.checked_add(machine.symbol_length.into())?;
    let length = u16::from_le_bytes(*memory.bytes(length, 2).first_chunk()?);
    let length = length.min(MAX_BYTES).into();
    let body = address.checked_add(machine.symbol_body.into())?;
    let bytes = memory.bytes(body, length);
    (bytes.len() == length).then(|| decode(&bytes))
}

/// Decodes modified UTF-8. It has a sequence of up to three bytes for each unit of UTF-16.
fn decode(bytes: &[u8]) -> String {
    if let Some(text) = bytes.is_ascii().then(|| std::str::from_utf8(bytes)) {
        return text.unwrap_or_default().to_owned();
    }
    let mut units = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    let tail = |byte: u8| u16::from(byte & 0x3f);
    loop {
        rest = match *rest {
            [first, second, third, ref rest @ ..] if first >> 4 == 0xe => {
                units.push(u16::from(first & 0xf) << 12 | tail(second) << 6 | tail(third));
                rest
            }
            [first, second, ref rest @ ..] if first >> 5 == 6 => {
                units.push(u16::from(first & 0x1f) << 6 | tail(second));
                rest
            }
            [first, ref rest @ ..] => {
                let is_ascii = first < 0x80;
                units.push(if is_ascii { first.into() } else { 0xfffd });
                rest
            }
            [] => return String::from_utf16_lossy(&units),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_any_characters() {
        assert_eq!(decode(b"java/lang/Object"), "java/lang/Object");
        assert_eq!(decode("größe_日本".as_bytes()), "größe_日本");
        // U+1F600 is two units of UTF-16, with three bytes each. U+0000 has two bytes.
        assert_eq!(decode(b"a\xed\xa0\xbd\xed\xb8\x80\xc0\x80"), "a\u{1f600}\0");
        assert_eq!(decode(b"\xe6\x97"), "\u{fffd}\u{fffd}");
    }
}
