//! Java functions: a `Method` leads to a `ConstMethod`, and from there to the names and the lines.

use bpf::types::headers::hotspot_limits;

use super::layout::{Machine, SourceFile};
use super::symbol;
use crate::chain::hash_word;
use crate::language::{Function, Pieces};

/// Maximum size of a table of lines, in bytes.
const MAX_LINES: usize = 64 << 10;
/// Size that most of these tables do not exceed, in bytes.
const MOST_LINES: usize = 1 << 10;
/// Flag of a `ConstMethod` with a table of lines.
const HAS_LINES: u8 = 1;
/// Byte that begins an entry whose differences do not fit into one byte.
const ESCAPE: u8 = 0xff;

/// Java function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Method {
    name: String,
    /// Path of the source file: the folder of the package, and the name that the class has.
    file: String,
    /// Positions of bytecodes and their lines, in the order of the class file.
    lines: Vec<(u32, u32)>,
}

impl Function for Method {
    fn name(&self) -> &str {
        &self.name
    }

    fn file(&self) -> &str {
        &self.file
    }

    fn first_line(&self) -> u32 {
        self.lines.iter().map(|(_, line)| *line).min().unwrap_or(0)
    }

    /// Returns the line of a bytecode: `Method::line_number_from_bci` of method.cpp.
    fn line(&self, instruction: i32) -> Option<u32> {
        let at = u32::try_from(instruction).unwrap_or(0);
        let exact = self.lines.iter().find(|(start, _)| *start == at);
        let before = self.lines.iter().filter(|(start, _)| *start < at);
        let found = exact.or_else(|| before.max_by_key(|(start, _)| *start));
        found.map(|(_, line)| *line)
    }

    fn size(&self) -> usize {
        size_of::<Method>() + self.name.len() + self.file.len() + 8 * self.lines.len()
    }
}

/// Beginning of a `ConstMethod`.
struct ConstMethod<'a> {
    address: u64,
    machine: &'a Machine,
    bytes: Vec<u8>,
}

impl ConstMethod<'_> {
    fn read<'a>(
        memory: &(impl Pieces + ?Sized),
        machine: &'a Machine,
        method: u64,
    ) -> Option<ConstMethod<'a>> {
        let pointer = method.checked_add(hotspot_limits::HOTSPOT_CONST_METHOD.0.into())?;
        let address = word(memory, pointer).filter(|_| method.is_multiple_of(8) && method != 0)?;
        let most = hotspot_limits::HOTSPOT_CONSTANTS.0 + hotspot_limits::HOTSPOT_METHOD_BYTES.0;
        let bytes = memory.bytes(address, most as usize);
        (bytes.len() == most as usize).then_some(ConstMethod {
            address,
            machine,
            bytes,
        })
    }

    fn u64(&self, offset: u16) -> Option<u64> {
        let bytes = self.bytes.get(usize::from(offset)..)?;
        Some(u64::from_le_bytes(*bytes.first_chunk()?))
    }

    fn u16(&self, offset: u16) -> Option<u16> {
        let bytes = self.bytes.get(usize::from(offset)..)?;
        Some(u16::from_le_bytes(*bytes.first_chunk()?))
    }

    fn constants(&self) -> Option<u64> {
        self.u64(hotspot_limits::HOTSPOT_CONSTANTS.0 as u16)
    }

    fn code_size(&self) -> Option<u16> {
        self.u16(self.machine.layout.code_size)
    }

    fn code(&self) -> u64 {
        self.address
            .wrapping_add(self.machine.layout.const_method_bytes.into())
    }

    /// Returns the same number as `hash_class()` of `bpf/include/languages/hotspot.h`.
    fn class(&self, memory: &(impl Pieces + ?Sized)) -> Option<u64> {
        let layout = &self.machine.layout;
        let at = |address: u64, offset: u16| word(memory, address.checked_add(offset.into())?);
        let holder = at(self.constants()?, layout.pool_holder)?;
        let name = at(holder, layout.class_name)?;
        Some(hash_word(name, word(memory, name)? & layout.symbol_bits) | 1)
    }

    /// Returns the same number as `note_method()` of `bpf/include/languages/hotspot.h`.
    fn checksum(&self, memory: &(impl Pieces + ?Sized)) -> Option<u32> {
        let sizes = self.machine.layout.code_size & !7;
        let words = [self.address, self.constants()?, self.u64(sizes)?];
        Some((words.into_iter().fold(self.class(memory)?, hash_word) >> 32) as u32)
    }
}

/// Bytecodes of a method, as a step through one of its frames needs them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Code {
    pub(super) start: u64,
    pub(super) size: u16,
    pub(super) checksum: u32,
}

/// Reads where a method's bytecodes are, and its checksum.
pub(super) fn code(
    memory: &(impl Pieces + ?Sized),
    machine: &Machine,
    method: u64,
) -> Option<Code> {
    let constant = ConstMethod::read(memory, machine, method)?;
    Some(Code {
        start: constant.code(),
        size: constant.code_size()?,
        checksum: constant.checksum(memory)?,
    })
}

/// Reads a method; `None` if it cannot be read, or if another method is at its address.
pub(super) fn read(
    memory: &(impl Pieces + ?Sized),
    machine: &Machine,
    method: u64,
    checksum: u32,
) -> Option<Method> {
    let constant = ConstMethod::read(memory, machine, method)?;
    if constant.checksum(memory)? != checksum {
        return None;
    }
    let pool = Pool::read(memory, machine, constant.constants()?)?;
    let class_name = pool.class_name()?;
    let name = pool.symbol(constant.u16(machine.name_index)?)?;
    let flags = *constant.bytes.get(usize::from(machine.method_flags))?;
    let lines = if flags & HAS_LINES != 0 {
        let start = constant.code().checked_add(constant.code_size()?.into())?;
        let parse = |most| parse_lines(&memory.bytes(start, most), machine.number_base);
        let (lines, is_whole) = parse(MOST_LINES);
        if is_whole { lines } else { parse(MAX_LINES).0 }
    } else {
        Vec::new()
    };
    let package = class_name.rfind('/').map_or("", |end| &class_name[..=end]);
    let file = match pool.source_file()? {
        Some(file) => format!("{package}{file}"),
        None => String::new(),
    };
    // A hidden class has its address behind its name, as in `Main$$Lambda+0x00007f0c24001208`.
    let class_name = class_name.replace('/', ".").replacen("+0x", "/0x", 1);
    let read = Method {
        name: format!("{class_name}.{name}"),
        file,
        lines,
    };
    // The class may have been unloaded meanwhile.
    let again = ConstMethod::read(memory, machine, method)?;
    (again.checksum(memory)? == checksum).then_some(read)
}

/// Pool of constants of a class.
struct Pool<'a, M: ?Sized> {
    memory: &'a M,
    machine: &'a Machine,
    address: u64,
    length: u16,
}

impl<M: Pieces + ?Sized> Pool<'_, M> {
    fn read<'a>(memory: &'a M, machine: &'a Machine, address: u64) -> Option<Pool<'a, M>> {
        let length = memory.bytes(address.checked_add(machine.pool_length.into())?, 4);
        let length = u32::from_le_bytes(*length.first_chunk()?);
        Some(Pool {
            memory,
            machine,
            address,
            length: u16::try_from(length).ok()?,
        })
    }

    /// Returns the symbol with an index. Indexes of generated methods can be out of bounds.
    fn symbol(&self, index: u16) -> Option<String> {
        if index == 0 || index >= self.length {
            return None;
        }
        let entries = self.address.checked_add(self.machine.pool_bytes.into())?;
        let entry = word(self.memory, entries.checked_add(8 * u64::from(index))?)?;
        // The lowest bit says that the class of the name is not resolved.
        symbol::read(self.memory, self.machine, entry & !1)
    }

    fn holder(&self) -> Option<u64> {
        word(
            self.memory,
            self.address
                .checked_add(self.machine.layout.pool_holder.into())?,
        )
    }

    fn class_name(&self) -> Option<String> {
        let name = self
            .holder()?
            .checked_add(self.machine.layout.class_name.into())?;
        symbol::read(self.memory, self.machine, word(self.memory, name)?)
    }

    /// Returns the name of the source file, if the class has one.
    fn source_file(&self) -> Option<Option<String>> {
        let index = match self.machine.source_file {
            SourceFile::Class(offset) => self.holder()?.checked_add(offset.into())?,
            SourceFile::Pool(offset) => self.address.checked_add(offset.into())?,
        };
        let index = self.memory.bytes(index, 2);
        Some(self.symbol(u16::from_le_bytes(*index.first_chunk()?)))
    }
}

fn word(memory: &(impl Pieces + ?Sized), address: u64) -> Option<u64> {
    let bytes = memory.bytes(address, 8);
    Some(u64::from_le_bytes(*bytes.first_chunk()?))
}

/// Parses a compressed table of lines (`CompressedLineNumberReadStream` of method.cpp). Returns the
/// lines, and whether the table has its end.
fn parse_lines(bytes: &[u8], number_base: u32) -> (Vec<(u32, u32)>, bool) {
    let mut lines = Vec::new();
    let mut rest = Numbers::new(bytes, number_base);
    let (mut at, mut line) = (0_u32, 0_u32);
    while let Some(byte) = rest.byte() {
        if byte == 0 {
            return (lines, true);
        }
        let (bytecodes, added) = if byte == ESCAPE {
            let (Some(bytecodes), Some(added)) = (rest.signed(), rest.signed()) else {
                break;
            };
            (bytecodes, added)
        } else {
            (i32::from(byte >> 3), i32::from(byte & 7))
        };
        at = at.wrapping_add_signed(bytecodes);
        line = line.wrapping_add_signed(added);
        lines.push((at, line));
    }
    (lines, false)
}

/// Reader of compressed numbers: `UNSIGNED5` of share/utilities/unsigned5.hpp.
pub(super) struct Numbers<'a> {
    bytes: &'a [u8],
    base: u32,
}

impl Numbers<'_> {
    /// Bytes below this value end a number.
    const FIRST_HIGH: u32 = 192;
    const MAX_BYTES: u32 = 5;

    /// `base` is the value by which each byte exceeds its digit.
    pub(super) fn new(bytes: &[u8], base: u32) -> Numbers<'_> {
        Numbers { bytes, base }
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    pub(super) fn unsigned(&mut self) -> Option<u32> {
        let mut sum = 0_u32;
        for index in 0..Self::MAX_BYTES {
            let byte = u32::from(self.byte()?);
            let digit = byte.wrapping_sub(self.base);
            sum = sum.wrapping_add(digit.wrapping_shl(6 * index));
            if byte < Self::FIRST_HIGH {
                break;
            }
        }
        Some(sum)
    }

    fn signed(&mut self) -> Option<i32> {
        let value = self.unsigned()?;
        Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_numbers_have_up_to_five_bytes() {
        let read = |bytes: &[u8], base| Numbers::new(bytes, base).unsigned();
        assert_eq!(read(&[0], 0), Some(0));
        assert_eq!(read(&[191], 0), Some(191));
        assert_eq!(read(&[192, 0], 0), Some(192));
        assert_eq!(read(&[192, 1], 1), Some(191));
        assert_eq!(read(&[1], 1), Some(0));
        assert_eq!(read(&[255; 6], 0).map(|_| ()), Some(()));
        assert_eq!(read(&[192], 0), None);
    }

    #[test]
    fn lines_are_found_by_the_last_bytecode_before() {
        // Line 7 at 0, line 9 at 3, line 400 at 5 and line 8 at 100.
        let table = [7, 3 << 3 | 2, ESCAPE, 4, 206, 9, ESCAPE, 190, 207, 9, 0, 55];
        let (lines, is_whole) = parse_lines(&table, 0);
        assert!(is_whole && !parse_lines(&table[..10], 0).1);
        assert_eq!(lines, [(0, 7), (3, 9), (5, 400), (100, 8)]);
        let method = Method {
            name: String::new(),
            file: String::new(),
            lines,
        };
        let found = [-1, 0, 2, 3, 99, 100, 9999].map(|at| method.line(at));
        let expected = [7, 7, 7, 9, 400, 8, 8].map(Some);
        assert_eq!(found, expected);
        assert_eq!(method.first_line(), 7);
    }
}
