//! Code objects that frames run, read from the memory of their process.

use process::ProcessMemory;

use super::lines::Format;
use super::{Layout, Pieces, text};
use crate::chain::hash_word;
use crate::language::Function;

/// Maximum size of a line table, in bytes.
const LINES_LIMIT: u64 = 1 << 20;

/// Offsets of `ob_type` in `PyObject`, of `ob_size` in `PyVarObject`, and of the data in
/// `PyBytesObject`.
const OBJECT_TYPE: u64 = 8;
const OBJECT_SIZE: u64 = 16;
const BYTES_DATA: u64 = 32;
/// Offset of `tp_name` in `PyTypeObject`.
const TYPE_NAME: u64 = 24;
/// Name of `PyCode_Type`, with its zero byte.
const CODE_TYPE: &[u8] = b"code\0";

/// Size of an instruction (`_Py_CODEUNIT`), in bytes.
const UNIT: i64 = 2;

/// `CO_GENERATOR`, `CO_COROUTINE` and `CO_ASYNC_GENERATOR` of Include/cpython/code.h.
const GENERATORS: u32 = 0x20 | 0x80 | 0x200;

/// Code object that a frame runs: a function, a class body, a module, or executed text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeObject {
    /// Name (`co_qualname`, before 3.11 `co_name`). It can contain any characters.
    pub name: String,
    /// Path of the source file (`co_filename`). It can contain any characters.
    pub file: String,
    /// First line of the code, starting at 1.
    pub first_line: u32,
    format: Format,
    /// Line table; `None` if its size exceeds `LINES_LIMIT`, or if a part cannot be read.
    lines: Option<Vec<u8>>,
    /// Offset in bytes of the first instruction at which CPython regards the code as begun;
    /// `i64::MIN` before CPython 3.11.
    first_traceable: i64,
    is_generator: bool,
}

impl Function for CodeObject {
    fn name(&self) -> &str {
        &self.name
    }

    fn file(&self) -> &str {
        &self.file
    }

    fn first_line(&self) -> u32 {
        self.first_line
    }

    /// Returns the line of a frame at `instruction`. `instruction` is a distance from the first
    /// instruction in bytes, or negative if the code has not begun. Returns `None` for an
    /// instruction without a line, and if the table was not read.
    fn line(&self, instruction: i32) -> Option<u32> {
        let table = self.lines.as_ref()?;
        self.format.line(table, self.first_line, instruction)
    }

    fn size(&self) -> usize {
        let lines = self.lines.as_ref().map_or(0, Vec::len);
        size_of::<CodeObject>() + self.name.len() + self.file.len() + lines
    }

    fn has_lines(&self) -> bool {
        self.lines.is_some()
    }

    /// Tracebacks omit frames that are still being set up (`_PyFrame_IsIncomplete`), except frames of
    /// generators. They also omit frames without a function, such as the frame that cleans up after
    /// an `__init__`.
    fn is_shown(&self, instruction: i32) -> bool {
        self.is_generator || i64::from(instruction) >= self.first_traceable
    }
}

/// Returns the checksum that distinguishes a code object from a later one at the same address.
/// `bpf/include/languages/python.h` computes the same checksum. Its inputs are the addresses of
/// `co_filename` and `co_qualname` (before 3.11 `co_name`), and `co_firstlineno`.
pub fn checksum(filename: u64, qualname: u64, first_line: u32) -> u32 {
    let words = [filename, qualname, u64::from(first_line)];
    (words.into_iter().fold(0, hash_word) >> 32) as u32
}

/// Reads the code object at `address`; `None` if the read fails, if `address` has no code object,
/// or if the checksum of the code object is not `checksum`.
pub fn read(
    memory: &ProcessMemory,
    layout: &Layout,
    address: u64,
    checksum: u32,
) -> Option<CodeObject> {
    if !is_code(memory, &Fields::read(memory, address)?)? {
        return None;
    }
    let read = read_stopped(memory, layout, address, checksum)?;
    // The process may have replaced the code object during the read.
    let same = Fields::read(memory, address)?.checksum(layout) == Some(checksum);
    same.then_some(read)
}

/// Reads a code object from memory that does not change, such as a program's copy of a function
/// that is about to run.
pub fn read_stopped(
    memory: &(impl Pieces + ?Sized),
    layout: &Layout,
    address: u64,
    checksum: u32,
) -> Option<CodeObject> {
    let code =
        Fields::read(memory, address).filter(|code| code.checksum(layout) == Some(checksum))?;
    let first_traceable = match layout.code_first_traceable {
        // CPython before 3.11 shows all frames.
        0 => i64::MIN,
        offset => i64::from(code.u32(offset)? as i32) * UNIT,
    };
    Some(CodeObject {
        name: text::read(memory, layout, code.u64(layout.code_qualname)?)?,
        file: text::read(memory, layout, code.u64(layout.code_filename)?)?,
        first_line: code.u32(layout.code_first_line)?,
        format: layout.lines,
        lines: line_table(memory, code.u64(layout.code_line_table)?),
        first_traceable,
        is_generator: code.u32(layout.code_flags)? & GENERATORS != 0,
    })
}

/// Returns whether the object's type is the code type. The offsets are the same in all versions.
fn is_code(memory: &ProcessMemory, code: &Fields) -> Option<bool> {
    let kind = code.u64(OBJECT_TYPE as u16)?;
    let name = word(memory, kind.wrapping_add(TYPE_NAME))?;
    Some(memory.bytes(name, CODE_TYPE.len()) == CODE_TYPE)
}

/// Reads the contents of a `bytes` object; `None` if its size exceeds `LINES_LIMIT`, or if a part
/// cannot be read.
fn line_table(memory: &(impl Pieces + ?Sized), address: u64) -> Option<Vec<u8>> {
    let size = word(memory, address.wrapping_add(OBJECT_SIZE))?;
    if size > LINES_LIMIT {
        return None;
    }
    let bytes = memory.bytes(address.wrapping_add(BYTES_DATA), size as usize);
    (bytes.len() as u64 == size).then_some(bytes)
}

fn word(memory: &(impl Pieces + ?Sized), address: u64) -> Option<u64> {
    let bytes = memory.bytes(address, 8);
    Some(u64::from_le_bytes(*bytes.first_chunk()?))
}

/// Bytes of a code object. The layout has the offsets of the fields.
struct Fields(Vec<u8>);

impl Fields {
    fn read(memory: &(impl Pieces + ?Sized), address: u64) -> Option<Fields> {
        let bytes = memory.bytes(address, Layout::CODE_BYTES);
        (!bytes.is_empty()).then_some(Fields(bytes))
    }

    fn u64(&self, offset: u16) -> Option<u64> {
        let bytes = self.0.get(usize::from(offset)..)?;
        Some(u64::from_le_bytes(*bytes.first_chunk()?))
    }

    fn u32(&self, offset: u16) -> Option<u32> {
        let bytes = self.0.get(usize::from(offset)..)?;
        Some(u32::from_le_bytes(*bytes.first_chunk()?))
    }

    fn checksum(&self, layout: &Layout) -> Option<u32> {
        Some(checksum(
            self.u64(layout.code_filename)?,
            self.u64(layout.code_qualname)?,
            self.u32(layout.code_first_line)?,
        ))
    }
}

#[cfg(test)]
mod tests;
