//! Functions that frames run, read from the memory of their process.

use process::ProcessMemory;

use super::Layout;
use super::walk::{Header, INSTRUCTION_SIZE, Kind, header};
use crate::language::{Function, Pieces};

/// Maximum number of instructions whose lines are read.
const INSTRUCTIONS_LIMIT: u32 = 1 << 17;
/// Maximum length of a name, in bytes.
const TEXT_LIMIT: u64 = 4096;

/// Offset of the line in `struct _zend_op`.
const INSTRUCTION_LINE: usize = 24;

/// Offsets in `union _zend_function` and `struct _zend_class_entry`.
const CLASS: u64 = 16;
const CLASS_NAME: u64 = 8;

/// Offsets in `struct _zend_string`: the type with flags, the length, and the characters.
const TEXT_TYPE: usize = 4;
const TEXT_LENGTH: usize = 16;
const TEXT_HEADER: usize = 24;
/// `IS_STRING`, in the low 4 bits of the type.
const IS_STRING: u8 = 6;

/// Names of code without a name: a file, and the text of `eval`.
const FILE_CODE: &str = "{main}";
const EVAL_CODE: &str = "{eval}";

/// Function that a frame runs: a function, a method, a closure, a file, or the text of `eval`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhpFunction {
    /// Name with its class and namespace. It can contain any characters.
    pub name: String,
    /// Path of the source file; empty for a function in C. It can contain any characters.
    pub file: String,
    /// First line of the function, starting at 1; 0 for a function in C.
    pub first_line: u32,
    /// Line of each instruction; `None` if there are too many, or if they cannot be read.
    lines: Option<Vec<u32>>,
}

impl Function for PhpFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn file(&self) -> &str {
        &self.file
    }

    fn first_line(&self) -> u32 {
        self.first_line
    }

    /// Instructions have numbers from 0 on.
    fn line(&self, instruction: i32) -> Option<u32> {
        let number = usize::try_from(instruction).ok()?;
        let line = *self.lines.as_ref()?.get(number)?;
        (line != 0).then_some(line)
    }

    fn size(&self) -> usize {
        let lines = self.lines.as_ref().map_or(0, Vec::len);
        size_of::<PhpFunction>() + self.name.len() + self.file.len() + 4 * lines
    }

    fn has_lines(&self) -> bool {
        self.lines.is_some()
    }
}

/// Reads the function at `address`; `None` if the read fails, or if the checksum of the function is
/// not `checksum`.
pub fn read(
    memory: &ProcessMemory,
    layout: &Layout,
    has_requests: bool,
    address: u64,
    checksum: u32,
) -> Option<PhpFunction> {
    let read = read_stopped(memory, layout, has_requests, address, checksum)?;
    // The process may have replaced the function during the read.
    let after = header(|at| word(memory, at), layout, has_requests, address).ok()?;
    (after.checksum == checksum).then_some(read)
}

/// Reads a function from memory that does not change, such as a program's copy of a function that
/// is about to run.
pub fn read_stopped(
    memory: &(impl Pieces + ?Sized),
    layout: &Layout,
    has_requests: bool,
    address: u64,
    checksum: u32,
) -> Option<PhpFunction> {
    let header = header(|at| word(memory, at), layout, has_requests, address).ok()?;
    (header.checksum == checksum).then(|| contents(memory, layout, address, &header))?
}

/// Reads whatever is at an address as a function.
#[cfg(test)]
pub(super) fn read_any(memory: &impl Pieces, layout: &Layout, address: u64) -> Option<PhpFunction> {
    let header = header(|at| word(memory, at), layout, true, address).ok()?;
    contents(memory, layout, address, &header)
}

/// Reads what a function's header leads to.
fn contents(
    memory: &(impl Pieces + ?Sized),
    layout: &Layout,
    address: u64,
    header: &Header,
) -> Option<PhpFunction> {
    let name = match (header.name, header.kind) {
        (0, Kind::Internal) => return None,
        (0, Kind::User) => FILE_CODE.to_owned(),
        (0, Kind::Eval) => EVAL_CODE.to_owned(),
        (name, _) => text(memory, name)?,
    };
    let name = match word(memory, address.wrapping_add(CLASS))? {
        0 => name,
        class => {
            let class = text(memory, word(memory, class.wrapping_add(CLASS_NAME))?)?;
            // The name of an anonymous class goes on with a zero byte and a place.
            let class = class.split('\0').next().unwrap_or_default();
            format!("{class}::{name}")
        }
    };
    if header.kind == Kind::Internal {
        return Some(PhpFunction {
            name,
            file: String::new(),
            first_line: 0,
            lines: Some(Vec::new()),
        });
    }
    let file_at = address.wrapping_add(layout.function_file.into());
    Some(PhpFunction {
        name,
        file: text(memory, word(memory, file_at)?)?,
        first_line: word(memory, file_at.wrapping_add(8))? as u32,
        lines: lines(memory, header.opcodes, header.count),
    })
}

/// Reads the line of each instruction.
fn lines(memory: &(impl Pieces + ?Sized), opcodes: u64, count: u32) -> Option<Vec<u32>> {
    if count > INSTRUCTIONS_LIMIT {
        return None;
    }
    let size = count as usize * INSTRUCTION_SIZE as usize;
    let bytes = memory.bytes(opcodes, size);
    if bytes.len() != size {
        return None;
    }
    let instructions = bytes.chunks_exact(INSTRUCTION_SIZE as usize);
    instructions
        .map(|bytes| {
            Some(u32::from_le_bytes(
                *bytes.get(INSTRUCTION_LINE..)?.first_chunk()?,
            ))
        })
        .collect()
}

/// Reads the string at `address`; `None` if there is no string, or if it is too long.
fn text(memory: &(impl Pieces + ?Sized), address: u64) -> Option<String> {
    let header = memory.bytes(address, TEXT_HEADER);
    let is_string = header.get(TEXT_TYPE)? & 0xf == IS_STRING;
    let length = u64::from_le_bytes(*header.get(TEXT_LENGTH..)?.first_chunk()?);
    if !is_string || length > TEXT_LIMIT {
        return None;
    }
    let bytes = memory.bytes(address.wrapping_add(TEXT_HEADER as u64), length as usize);
    let is_whole = bytes.len() as u64 == length;
    is_whole.then(|| String::from_utf8_lossy(&bytes).into_owned())
}

fn word(memory: &(impl Pieces + ?Sized), address: u64) -> Option<u64> {
    let bytes = memory.bytes(address, 8);
    let mut word = [0; 8];
    // The last field of a piece may have 4 bytes.
    let is_enough = bytes.len() >= 4;
    word.iter_mut()
        .zip(&bytes)
        .for_each(|(to, from)| *to = *from);
    is_enough.then(|| u64::from_le_bytes(word))
}
