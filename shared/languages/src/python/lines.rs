//! Lines of instructions, in the three encodings of CPython.

/// Encoding of the line table of a code object. Each entry counts instructions and lines from the
/// entry before it. The first entry counts from the beginning of the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// 3.8 and 3.9 (Objects/lnotab_notes.txt): the number of bytes of instructions after which the
    /// line changes, and the change of the line.
    Steps,
    /// 3.10 (the same file of that version): the change of the line, and the number of bytes of
    /// instructions for which it is valid.
    Ranges,
    /// 3.11 and later (Objects/locations.md): changes of the line, lengths, and columns, which this
    /// module skips. Entries have variable length.
    Locations,
}

impl Format {
    /// Returns the line of the instruction that begins at byte `instruction`; `None` if the
    /// instruction has no line. A negative `instruction` means that the function has not begun. Its
    /// line is then the first line.
    pub fn line(self, table: &[u8], first_line: u32, instruction: i32) -> Option<u32> {
        if instruction < 0 {
            return Some(first_line);
        }
        // No table is long enough for these numbers to overflow.
        let instruction = i64::from(instruction);
        let first = i64::from(first_line);
        let line = match self {
            Format::Steps => Some(by_steps(table, first, instruction)),
            Format::Ranges => by_ranges(table, first, instruction),
            Format::Locations => by_locations(table, first, instruction),
        };
        u32::try_from(line?).ok()
    }
}

/// Finds a line like `PyCode_Addr2Line` of 3.9.
fn by_steps(table: &[u8], mut line: i64, instruction: i64) -> i64 {
    let mut start = 0;
    for &[bytes, lines] in table.as_chunks().0 {
        start += i64::from(bytes);
        if start > instruction {
            break;
        }
        line += i64::from(lines as i8);
    }
    line
}

/// Finds a line like `advance` in Objects/codeobject.c of 3.10.
fn by_ranges(table: &[u8], mut line: i64, instruction: i64) -> Option<i64> {
    /// Value that marks an entry without a line.
    const NO_LINE: i8 = i8::MIN;

    let mut end = 0;
    for &[bytes, lines] in table.as_chunks().0 {
        let lines = lines as i8;
        if lines != NO_LINE {
            line += i64::from(lines);
        }
        end += i64::from(bytes);
        if end > instruction {
            return (lines != NO_LINE).then_some(line);
        }
    }
    None
}

/// Finds a line like `advance` and `get_line_delta` in Objects/codeobject.c of 3.11.
fn by_locations(mut table: &[u8], mut line: i64, instruction: i64) -> Option<i64> {
    const BEGINS: u8 = 0x80;
    const UNIT: i64 = 2;

    let mut end = 0;
    while let Some((&entry, rest)) = table.split_first() {
        table = rest;
        if entry & BEGINS == 0 {
            continue;
        }
        let code = entry >> 3 & 15;
        line = line.wrapping_add(match code {
            10..=12 => i64::from(code) - 10,
            13 | 14 => signed_number(rest)?,
            _ => 0,
        });
        end += (i64::from(entry & 7) + 1) * UNIT;
        if end > instruction {
            return (code != 15).then_some(line);
        }
    }
    None
}

/// Parses a number at the start of `bytes`. Each byte has six bits of it, lowest bits first. The
/// lowest bit of the number is the sign. Returns `None` if the number is longer than CPython
/// writes.
fn signed_number(bytes: &[u8]) -> Option<i64> {
    const GOES_ON: u8 = 0x40;
    /// Maximum number of bytes, which a C `int` needs.
    const MOST: usize = 6;

    let mut number = 0_i64;
    for (index, &byte) in bytes.iter().take(MOST).enumerate() {
        number |= i64::from(byte & 0x3f) << (6 * index);
        if byte & GOES_ON == 0 {
            let magnitude = number >> 1;
            return Some(if number & 1 == 0 {
                magnitude
            } else {
                -magnitude
            });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(format: Format, table: &[u8], until: i32) -> Vec<Option<u32>> {
        let at = (0..until).step_by(2);
        at.map(|at| format.line(table, 100, at)).collect()
    }

    #[test]
    fn steps_are_taken_before_their_instruction() {
        let table = [2, 1, 0, 5, 4, 0xff];
        let expected = [100, 106, 106, 105, 105].map(Some);
        assert_eq!(lines(Format::Steps, &table, 10), expected);
        assert_eq!(Format::Steps.line(&table, 100, -1), Some(100));
        // A truncated entry is ignored.
        assert_eq!(lines(Format::Steps, &[2], 4), [Some(100); 2]);
    }

    #[test]
    fn ranges_are_where_their_lines_are() {
        let table = [2, 1, 0, 5, 4, 0x80, 2, 0xff];
        let expected = [Some(101), None, None, Some(105), None];
        assert_eq!(lines(Format::Ranges, &table, 10), expected);
        assert_eq!(Format::Ranges.line(&table, 100, -2), Some(100));
    }

    #[test]
    fn locations_have_lines_of_each_kind() {
        let entry = |code: u8, units: u8| 0x80 | code << 3 | (units - 1);
        let table = [
            // This entry has columns only.
            &[entry(3, 1), 0x11][..],
            &[entry(11, 2), 1, 2],
            // This entry has no line. The next entry counts from the line before it.
            &[entry(15, 1)],
            &[entry(12, 1), 1, 2],
            // The line goes back by 70 in the first entry, and forward by 70 in the second.
            &[entry(13, 1), 0x4d, 2],
            &[entry(14, 1), 0x4c, 2, 0, 1, 1],
        ]
        .concat();
        let expected = [
            Some(100),
            Some(101),
            Some(101),
            None,
            Some(103),
            Some(33),
            Some(103),
            None,
        ];
        assert_eq!(lines(Format::Locations, &table, 16), expected);
    }

    #[test]
    fn lines_that_are_none_are_none() {
        let back = [0x80 | 13 << 3, 0x4d, 2];
        assert_eq!(Format::Locations.line(&back, 5, 0), None);
        let endless = [0xe8, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f];
        assert_eq!(Format::Locations.line(&endless, 5, 0), None);
        assert_eq!(Format::Ranges.line(&[2, 0x81], 5, 0), None);
        assert_eq!(Format::Steps.line(&[0, 0x81], 5, 0), None);
    }

    proptest! {
        #[test]
        fn no_bytes_do_harm(
            table in prop::collection::vec(any::<u8>(), 0..600),
            first_line in any::<u32>(),
            instruction in any::<i32>(),
            near in 0..300,
        ) {
            for format in [Format::Steps, Format::Ranges, Format::Locations] {
                format.line(&table, first_line, instruction);
                format.line(&table, first_line, near);
            }
        }
    }
}
