//! Tables of positions: which position in the source belongs to an offset in code.

/// Returns the position for `offset` in a table (src/codegen/source-position-table.cc). The entry
/// at or before `offset` has it.
pub(super) fn position(table: &[u8], offset: u32, has_unsigned_deltas: bool) -> Option<u64> {
    let mut bytes = table.iter().copied();
    let (mut code, mut source) = (-1_i64, 0_i64);
    let mut found = None;
    while let Some(delta) = variable_length(&mut bytes) {
        code = code.checked_add(if has_unsigned_deltas {
            i64::try_from(delta >> 2).ok()?
        } else {
            match signed(delta) {
                // A negative delta marks an expression, not a statement.
                negative if negative < 0 => -(negative + 1),
                delta => delta,
            }
        })?;
        if code > i64::from(offset) {
            break;
        }
        source = source.wrapping_add(signed(variable_length(&mut bytes)?));
        found = Some(source.cast_unsigned());
    }
    found
}

/// Position in a table of positions: an offset in the source, and a number of an inlined call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// Offset in the source, in UTF-16 code units; `None` if there is none.
    pub(super) offset: Option<u32>,
    /// Number of the inlined call, starting at 1; 0 if the code is not inlined.
    pub(super) call: usize,
}

impl Position {
    /// Decodes a position (`SourcePosition` of src/codegen/source-position.h).
    pub(super) fn new(word: u64) -> Position {
        let is_external = word & 1 == 1;
        let offset = (word >> 1 & 0x3fff_ffff) as u32;
        Position {
            offset: offset.checked_sub(1).filter(|_| !is_external),
            call: (word >> 31 & 0xffff) as usize,
        }
    }
}

/// Reads a number of bytes with 7 bits each, lowest bits first. Returns `None` at the end, and for
/// a number that is longer than V8 writes.
pub(super) fn variable_length(bytes: &mut impl Iterator<Item = u8>) -> Option<u64> {
    const MOST: usize = 10;
    let mut number = 0;
    for place in 0..MOST {
        let byte = bytes.next()?;
        number |= u64::from(byte & 0x7f).checked_shl(7 * place as u32)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Decodes a number whose lowest bit is its sign.
fn signed(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}
