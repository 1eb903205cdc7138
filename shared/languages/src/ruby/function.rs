//! Functions that frames run, read from the memory of their process.

use process::ProcessMemory;

use super::Layout;
use super::objects::{element, is_array, text, word};
use super::walk::{BODY_LABEL, BODY_PATH, IS_ID, IS_NAME, checksum};
use crate::chain::Frame;
use crate::language::{Function, Pieces};

/// Maximum number of lines, and of words of code.
const LINES_LIMIT: u32 = 1 << 17;
const SIZE_LIMIT: u32 = 1 << 22;

/// `struct succ_index_table` of iseq.c: 54 positions with 9 in a word, and blocks of 512 positions
/// with the rank of the first, ranks of words, and a bit for each position.
const FIRST_POSITIONS: usize = 54;
const POSITIONS_IN_WORD: usize = 9;
const FIRST_BYTES: usize = 48;
const BLOCK_POSITIONS: usize = 512;
const BLOCK_BYTES: usize = 80;

/// Function that a frame runs: a method, a block, the body of a class, a file, the text of `eval`,
/// or a function in C.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RubyFunction {
    /// Label, such as `block in each`. It can contain any characters.
    pub name: String,
    /// Path of the source file; empty for a function in C. It can contain any characters.
    pub file: String,
    /// First line with code; 0 for a function in C.
    pub first_line: u32,
    /// Lines; `None` if there are too many, or if they cannot be read.
    lines: Option<Lines>,
}

/// Lines of a function's positions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Lines {
    lines: Vec<u32>,
    /// `struct succ_index_table`; empty if all positions have one line.
    index: Vec<u8>,
}

impl Lines {
    /// Returns the line of the instruction that ends at position `end`, in words.
    fn line(&self, end: usize) -> Option<u32> {
        let line = |number: usize| self.lines.get(number).copied().filter(|line| *line != 0);
        if self.lines.len() <= 1 {
            return line(0);
        }
        let position = end.saturating_sub(1);
        let word = |at: usize| {
            let bytes = self.index.get(at..)?.first_chunk()?;
            Some(u64::from_le_bytes(*bytes))
        };
        let rank = if position < FIRST_POSITIONS {
            let shift = position % POSITIONS_IN_WORD * 7;
            word(position / POSITIONS_IN_WORD * 8)? >> shift & 0x7f
        } else {
            let position = position - FIRST_POSITIONS;
            let block = FIRST_BYTES + position / BLOCK_POSITIONS * BLOCK_BYTES;
            let bit = position % BLOCK_POSITIONS;
            let small = match bit / 64 {
                0 => 0,
                number => word(block + 8)? >> (9 * (number - 1)) & 0x1ff,
            };
            let bits = word(block + 16 + bit / 64 * 8)? << (63 - bit % 64);
            (word(block)? & 0xffff_ffff) + small + u64::from(bits.count_ones())
        };
        line(usize::try_from(rank.checked_sub(1)?).ok()?)
    }
}

impl Function for RubyFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn file(&self) -> &str {
        &self.file
    }

    fn first_line(&self) -> u32 {
        self.first_line
    }

    /// The instruction ends at a position.
    fn line(&self, position: i32) -> Option<u32> {
        let position = usize::try_from(position).ok()?;
        self.lines.as_ref()?.line(position)
    }

    fn size(&self) -> usize {
        let lines = self.lines.as_ref();
        let lines = lines.map_or(0, |lines| 4 * lines.lines.len() + lines.index.len());
        size_of::<RubyFunction>() + self.name.len() + self.file.len() + lines
    }

    fn has_lines(&self) -> bool {
        self.lines.is_some()
    }
}

impl RubyFunction {
    fn in_c(name: String) -> RubyFunction {
        RubyFunction {
            name,
            file: String::new(),
            first_line: 0,
            lines: Some(Lines::default()),
        }
    }
}

/// Reads the function of a frame; `None` if the read fails, or if another function is there now.
/// The name of a function in C is a symbol's, which lasts as long as the process.
pub fn read(memory: &ProcessMemory, layout: &Layout, frame: Frame) -> Option<RubyFunction> {
    if frame.code & IS_ID != 0 {
        return None;
    }
    let read = read_stopped(memory, layout, frame)?;
    // The process may have replaced the function during the read.
    let is_in_c = frame.code & IS_NAME != 0;
    let is_same = || checksum(|at| word(memory, at), layout, frame.code) == Some(frame.checksum);
    (is_in_c || is_same()).then_some(read)
}

/// Reads a function from memory that does not change, such as a program's copy of a function that
/// is about to run.
pub fn read_stopped(
    memory: &(impl Pieces + ?Sized),
    layout: &Layout,
    frame: Frame,
) -> Option<RubyFunction> {
    let body = frame.code;
    if body & IS_ID != 0 {
        // The copy has the address of the name in place of the ID.
        let name = text(memory, layout, word(memory, body)?)?;
        return Some(RubyFunction::in_c(name));
    }
    if body & IS_NAME != 0 {
        return Some(RubyFunction::in_c(text(memory, layout, body & !IS_NAME)?));
    }
    let found = checksum(|at| word(memory, at), layout, body)?;
    (found == frame.checksum).then(|| contents(memory, layout, body))?
}

/// Reads whatever is at an address as the body of a function.
#[cfg(test)]
pub(super) fn read_any(memory: &impl Pieces, layout: &Layout, body: u64) -> Option<RubyFunction> {
    contents(memory, layout, body)
}

/// Reads what the body of a function leads to.
fn contents(memory: &(impl Pieces + ?Sized), layout: &Layout, body: u64) -> Option<RubyFunction> {
    let path = word(memory, body.wrapping_add(BODY_PATH))?;
    let path = if is_array(memory, path)? {
        element(memory, path, 0)?
    } else {
        path
    };
    let lines = lines(memory, layout, body);
    Some(RubyFunction {
        name: text(memory, layout, word(memory, body.wrapping_add(BODY_LABEL))?)?,
        file: text(memory, layout, path)?,
        first_line: (lines.as_ref())
            .and_then(|lines| lines.lines.iter().copied().filter(|line| *line != 0).min())
            .unwrap_or(0),
        lines,
    })
}

fn lines(memory: &(impl Pieces + ?Sized), layout: &Layout, body: u64) -> Option<Lines> {
    let field = |offset: u64| word(memory, body.wrapping_add(offset));
    // The first word has the kind and the number of words of code.
    let size = (field(0)? >> 32) as u32;
    let count = field(layout.body_count.into())? as u32;
    if count > LINES_LIMIT || size > SIZE_LIMIT {
        return None;
    }
    let entry = usize::from(layout.line_bytes);
    let bytes = whole(
        memory,
        field(layout.body_lines.into())?,
        count as usize * entry,
    )?;
    let entries = bytes.chunks_exact(entry);
    let lines = entries.filter_map(|entry| Some(u32::from_le_bytes(*entry.first_chunk()?)));
    let lines: Vec<u32> = lines.collect();
    let blocks = (size as usize)
        .saturating_sub(FIRST_POSITIONS)
        .div_ceil(BLOCK_POSITIONS);
    let index = if count > 1 {
        let size = FIRST_BYTES + blocks * BLOCK_BYTES;
        whole(memory, field(layout.body_index.into())?, size)?
    } else {
        Vec::new()
    };
    Some(Lines { lines, index })
}

/// Reads `size` bytes; `None` if some of them cannot be read.
fn whole(memory: &(impl Pieces + ?Sized), address: u64, size: usize) -> Option<Vec<u8>> {
    let bytes = memory.bytes(address, size);
    (bytes.len() == size).then_some(bytes)
}
