//! Machine code: the object that contains an address, and the functions at the address.

use std::sync::Arc;

use super::functions::JsFunction;
use super::heap::{DATA, Heap, is_object, small_integer};
use super::positions::{Position, position, variable_length};
use super::sizes;
use crate::language::{Function, Inlined};

/// Maximum distance from an instruction to the start of its code, in bytes.
const CODE_LIMIT: u64 = 256 << 10;
/// Number of bytes that are read at once in search of the start.
const PIECE: u64 = 4 << 10;
/// Maximum number of words whose type is looked up in search of the start.
const LOOKS: usize = 512;
/// Offset of the `Code` in the object that contains its instructions.
const CODE_OF_INSTRUCTIONS: u64 = 8;
/// Size of the fields of a `Code` that are read.
const CODE_SIZE: usize = 64;
/// Maximum number of functions that are inlined at one address.
const DEPTH: usize = 64;
/// Maximum length of bytecode, in bytes.
const BYTECODE_LIMIT: i32 = 16 << 20;

/// Kind of machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// One piece of code for each bytecode.
    Baseline,
    /// Maglev's or Turbofan's code, with inlined functions.
    Optimized,
    Other,
}

/// Machine code of a function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Code {
    pub(super) kind: Kind,
    start: u64,
    size: u64,
    /// Bytecode of baseline code, deoptimization data of optimized code.
    pub(super) data: u64,
    /// Table of bytecodes of baseline code, of positions of optimized code.
    positions: u64,
}

/// Function at an address in machine code.
#[derive(Debug)]
pub(super) struct Call {
    function: Arc<JsFunction>,
    line: Option<u32>,
    inlined: Vec<Inlined>,
}

impl Call {
    /// Makes a call of a function whose line is not known.
    pub(super) fn without_line(function: Arc<JsFunction>) -> Call {
        Call {
            function,
            line: None,
            inlined: Vec::new(),
        }
    }
}

impl Function for Call {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn file(&self) -> &str {
        self.function.file()
    }

    fn first_line(&self) -> u32 {
        self.function.first_line()
    }

    fn line(&self, _instruction: i32) -> Option<u32> {
        self.line
    }

    fn inlined(&self) -> &[Inlined] {
        &self.inlined
    }

    fn has_lines(&self) -> bool {
        self.function.has_lines()
    }

    fn size(&self) -> usize {
        size_of::<Call>() + self.inlined.len() * size_of::<Inlined>()
    }
}

impl Heap<'_> {
    /// Returns the machine code that contains an address; `None` if V8 has not made it.
    pub(super) fn code_at(&mut self, address: u64) -> Option<Code> {
        let layout = self.layout;
        let header = layout.code_header;
        let mut candidate = (address & !(layout.code_alignment - 1)).checked_sub(header)?;
        let last = address.saturating_sub(CODE_LIMIT);
        let mut looks = 0;
        let mut start = u64::MAX;
        let mut piece = Vec::new();
        while candidate >= last {
            if candidate < start {
                start = candidate & !(PIECE - 1);
                piece = self.bytes(start, PIECE as usize)?;
            }
            let word = piece.get((candidate - start) as usize..)?;
            let map = u64::from_le_bytes(*word.first_chunk()?);
            if is_object(map) && self.is_code_map(map, &mut looks) {
                let code = self.code_in(candidate)?;
                let end = code.start.checked_add(code.size)?;
                return (code.start..end).contains(&address).then_some(code);
            }
            candidate = candidate.checked_sub(layout.code_alignment)?;
        }
        None
    }

    /// Returns whether a word is the map of objects that contain instructions. Looks up at most
    /// [`LOOKS`] words.
    fn is_code_map(&mut self, map: u64, looks: &mut usize) -> bool {
        if self.state.code_maps.contains(&map) {
            return true;
        }
        if *looks >= LOOKS {
            return false;
        }
        *looks += 1;
        let is_map = self.kind_of_map(map) == Some(self.layout.types.instructions)
            && self.kind(map) == Some(self.layout.types.map);
        if is_map {
            self.state.code_maps.insert(map);
        }
        is_map
    }

    /// Reads the code whose instructions are in the object at an address.
    fn code_in(&mut self, address: u64) -> Option<Code> {
        let layout = self.layout;
        let object = if layout.code_start == 0 {
            address + 1
        } else {
            self.word(address + 1, CODE_OF_INSTRUCTIONS)?
        };
        if self.kind(object)? != layout.types.code {
            return None;
        }
        let bytes = self.bytes(object - 1, CODE_SIZE)?;
        let word = |offset: u16| {
            let bytes = bytes.get(usize::from(offset)..)?;
            Some(u64::from_le_bytes(*bytes.first_chunk()?))
        };
        let half = |offset: u16| {
            let bytes = bytes.get(usize::from(offset)..)?;
            Some(u32::from_le_bytes(*bytes.first_chunk()?))
        };
        let kind = half(layout.code_flags)? & 15;
        Some(Code {
            kind: match kind.wrapping_sub(layout.baseline) {
                0 => Kind::Baseline,
                1 | 2 => Kind::Optimized,
                _ => Kind::Other,
            },
            start: match layout.code_start {
                0 => address + layout.code_header,
                offset => word(offset)?,
            },
            size: half(layout.code_size)?.into(),
            data: word(layout.code_data)?,
            positions: word(layout.code_positions)?,
        })
    }

    /// Returns the function that a piece of optimized code was made for, by the address of its
    /// description.
    pub(super) fn optimized_function(&mut self, code: &Code) -> Option<u64> {
        /// Offset of the function in a wrapper.
        const WRAPPED: u64 = 8;
        let object = self.element(code.data, self.layout.deopt_function)?;
        let object = if self.kind(object)? == self.layout.types.info {
            object
        } else {
            self.word(object, WRAPPED)?
        };
        is_object(object).then(|| object - 1)
    }

    fn element(&mut self, array: u64, index: u64) -> Option<u64> {
        self.word(array, DATA + 8 * index)
    }

    /// Returns the call at an address in the machine code of a function.
    pub(super) fn call(&mut self, info: u64, checksum: u32, address: u64) -> Option<Call> {
        let function = self.function(info, checksum)?;
        let nothing = Call::without_line(Arc::clone(&function));
        if function.script.is_none() {
            return Some(nothing);
        }
        let Some(code) = self.code_at(address) else {
            return Some(nothing);
        };
        let offset = (address - code.start) as u32;
        let call = match code.kind {
            Kind::Baseline => self.baseline_call(&function, &code, info, offset),
            Kind::Optimized => self.optimized_call(&function, &code, info, offset),
            Kind::Other => None,
        };
        Some(call.unwrap_or(nothing))
    }

    fn baseline_call(
        &mut self,
        function: &Arc<JsFunction>,
        code: &Code,
        info: u64,
        offset: u32,
    ) -> Option<Call> {
        let bytecode = self.bytecode(code.data)?;
        let own = self.info(info)?;
        if self.bytecode(own.code)? != bytecode {
            return None;
        }
        let table = self.byte_array(code.positions)?;
        let length = small_integer(self.word(bytecode, super::heap::LENGTH)?)?;
        if !(0..=BYTECODE_LIMIT).contains(&length) {
            return None;
        }
        let data = bytecode - 1 + u64::from(self.layout.bytecode_data);
        let bytecodes = self.bytes(data, length as usize)?;
        let at = baseline_position(&table, &bytecodes, self.layout.sizes, offset)?;
        Some(Call {
            line: function.line(at),
            ..Call::without_line(Arc::clone(function))
        })
    }

    fn optimized_call(
        &mut self,
        function: &Arc<JsFunction>,
        code: &Code,
        info: u64,
        offset: u32,
    ) -> Option<Call> {
        /// Size of an `InliningPosition`, and offset of the function's index.
        const RECORD: usize = 16;
        const FUNCTION: usize = 8;
        if self.optimized_function(code)? != info {
            return None;
        }
        let table = self.byte_array(code.positions)?;
        let mut at = Position::new(position(&table, offset, self.layout.has_unsigned_deltas)?);
        let mut inlined: Vec<Inlined> = Vec::new();
        if at.call != 0 {
            let records = self.element(code.data, self.layout.deopt_positions)?;
            let records = self.byte_array(records)?;
            let literals = self.element(code.data, self.layout.deopt_literals)?;
            while at.call != 0 {
                if inlined.len() >= DEPTH {
                    return None;
                }
                let record = records.get((at.call - 1) * RECORD..at.call * RECORD)?;
                let index = i32::from_le_bytes(*record.get(FUNCTION..)?.first_chunk()?);
                let called = match u64::try_from(index) {
                    Ok(index) => self.literal_function(literals, index)?,
                    Err(_) => Arc::clone(function),
                };
                inlined.push(Inlined {
                    line: called.line_at(at),
                    function: called,
                });
                at = Position::new(u64::from_le_bytes(*record.first_chunk()?));
            }
        }
        Some(Call {
            function: Arc::clone(function),
            line: function.line_at(at),
            inlined,
        })
    }

    /// Returns the function at an index of the literals of optimized code.
    fn literal_function(&mut self, literals: u64, index: u64) -> Option<Arc<JsFunction>> {
        /// Bit of references that do not keep an object alive.
        const WEAK: u64 = 2;
        let object = self.element(literals, index)? & !WEAK;
        let address = object.checked_sub(1)?;
        let checksum = self.info(address)?.checksum();
        self.function(address, checksum)
    }
}

/// Returns the offset of the bytecode for an offset in baseline code. The table has the length of
/// the code before the first bytecode, and then the length of each bytecode's code.
fn baseline_position(
    table: &[u8],
    bytecodes: &[u8],
    sizes: &sizes::Sizes,
    offset: u32,
) -> Option<i32> {
    let mut lengths = table.iter().copied();
    let mut end = variable_length(&mut lengths)?;
    let mut at = 0;
    if u64::from(offset) < end {
        return Some(0);
    }
    while let Some(length) = variable_length(&mut lengths) {
        end = end.checked_add(length)?;
        if u64::from(offset) < end {
            break;
        }
        at += sizes::size(sizes, bytecodes.get(at..)?)?;
    }
    i32::try_from(at).ok()
}
