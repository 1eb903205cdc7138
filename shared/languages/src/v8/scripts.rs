//! Scripts: the names and the lines of source files.

use std::sync::Arc;

use super::heap::{DATA, Heap, LENGTH, keep, small_integer};

/// Offsets in a `Script`.
const SOURCE: u64 = 8;
const NAME: u64 = 16;
const LINE_OFFSET: u64 = 24;
const LINE_ENDS: u64 = 56;

/// Maximum number of characters of a path.
const PATH_LIMIT: u64 = 4096;
/// Maximum number of characters of a source.
const SOURCE_LIMIT: u64 = 64 << 20;
/// Maximum number of lines of all scripts of a process.
const LINES_LIMIT: usize = 8 << 20;
/// Number of bytes of a source that are read at once.
const PIECE: u64 = 256 << 10;

/// Name of code without a file, as V8 shows it.
const NO_FILE: &str = "<anonymous>";
/// Scheme of the addresses by which modules are loaded.
const FILE_SCHEME: &str = "file://";

/// Source file, or source that a program made.
#[derive(Debug)]
pub(super) struct Script {
    /// Path.
    pub(super) name: String,
    /// Number that is added to lines.
    offset: i32,
    /// Offset of the end of each line, ascending.
    ends: Vec<u32>,
}

impl Script {
    /// Returns the line of a position, starting at 1.
    pub(super) fn line(&self, position: u32) -> Option<u32> {
        let before = self.ends.partition_point(|end| *end < position);
        if before >= self.ends.len() {
            return None;
        }
        let line = i64::try_from(before).ok()? + 1 + i64::from(self.offset);
        u32::try_from(line).ok()
    }
}

impl Heap<'_> {
    /// Reads a script; `None` if the object is none, or if it cannot be read.
    pub(super) fn script(&mut self, object: u64) -> Option<Arc<Script>> {
        let object = self.script_of(object)?;
        let source = self.word(object, SOURCE)?;
        let name = self.word(object, NAME)?;
        let key = [object, source, name];
        if let Some(known) = self.state.scripts.get(&key) {
            return Some(Arc::clone(known));
        }
        // A read that fails, as while the script moves, may succeed the next time.
        let script = Arc::new(self.read_script(object, source, name)?);
        self.state.lines += script.ends.len();
        keep(&mut self.state.scripts, key, Arc::clone(&script));
        Some(script)
    }

    /// Returns the script that a function refers to, directly or through a `DebugInfo`.
    pub(super) fn script_of(&mut self, object: u64) -> Option<u64> {
        const FIELDS: [u64; 4] = [16, 24, 32, 40];
        let kind = self.kind(object)?;
        let types = &self.layout.types;
        if kind == types.script {
            return Some(object);
        }
        if kind != types.debug_info {
            return None;
        }
        FIELDS.into_iter().find_map(|field| {
            let script = self.word(object, field)?;
            let is_script = self.kind(script) == Some(self.layout.types.script);
            is_script.then_some(script)
        })
    }

    fn read_script(&mut self, object: u64, source: u64, name: u64) -> Option<Script> {
        let name = if self.is_string(name) {
            self.string(name, PATH_LIMIT)?
        } else {
            NO_FILE.to_owned()
        };
        let name = match name.strip_prefix(FILE_SCHEME) {
            Some(path) => decode(path),
            None => name,
        };
        let ends = match self.line_ends(object) {
            Some(ends) => ends,
            None => self.find_lines(source)?,
        };
        Some(Script {
            name,
            offset: small_integer(self.word(object, LINE_OFFSET)?)?,
            ends,
        })
    }

    /// Returns the ends of lines that V8 has found; `None` if it has not searched for them.
    fn line_ends(&mut self, object: u64) -> Option<Vec<u32>> {
        let array = self.word(object, LINE_ENDS)?;
        if self.kind(array)? != self.layout.types.fixed_array {
            return None;
        }
        let length = usize::try_from(small_integer(self.word(array, LENGTH)?)?).ok()?;
        if length == 0 || self.state.lines + length > LINES_LIMIT {
            return None;
        }
        let bytes = self.bytes(array - 1 + DATA, length * 8)?;
        let (words, _) = bytes.as_chunks();
        let ends = words.iter().map(|word| {
            let end = small_integer(u64::from_le_bytes(*word))?;
            u32::try_from(end).ok()
        });
        let ends: Vec<u32> = ends.collect::<Option<_>>()?;
        ends.is_sorted().then_some(ends)
    }

    /// Finds the ends of lines in a source, as V8 does: at line feeds, carriage returns, and the
    /// line and paragraph separators of Unicode.
    fn find_lines(&mut self, source: u64) -> Option<Vec<u32>> {
        let parts = self.parts(source)?;
        let total: u64 = parts.iter().map(|part| part.length).sum();
        if total > SOURCE_LIMIT {
            return None;
        }
        let mut lines = Lines::default();
        for part in parts {
            let size = part.length * part.width;
            let mut read = 0;
            while read < size {
                let piece = PIECE.min(size - read);
                let bytes = self.bytes(part.address.wrapping_add(read), piece as usize)?;
                if part.width == 1 {
                    bytes.iter().for_each(|byte| lines.add(u16::from(*byte)));
                } else {
                    let (pairs, _) = bytes.as_chunks();
                    for pair in pairs {
                        lines.add(u16::from_le_bytes(*pair));
                    }
                }
                read += piece;
            }
            if self.state.lines + lines.ends.len() > LINES_LIMIT {
                return None;
            }
        }
        lines.end_at_carriage_return();
        lines.ends.push(lines.at);
        Some(lines.ends)
    }
}

/// Search for the ends of lines.
#[derive(Default)]
struct Lines {
    ends: Vec<u32>,
    at: u32,
    /// True if the last character was a carriage return, whose line a line feed may end.
    is_after_return: bool,
}

impl Lines {
    fn add(&mut self, character: u16) {
        const LINE_FEED: u16 = 10;
        const CARRIAGE_RETURN: u16 = 13;
        const SEPARATORS: [u16; 2] = [0x2028, 0x2029];
        if character != LINE_FEED {
            self.end_at_carriage_return();
        }
        self.is_after_return = character == CARRIAGE_RETURN;
        if character == LINE_FEED || SEPARATORS.contains(&character) {
            self.ends.push(self.at);
        }
        self.at += 1;
    }

    fn end_at_carriage_return(&mut self) {
        if std::mem::take(&mut self.is_after_return) {
            self.ends.push(self.at - 1);
        }
    }
}

/// Decodes the bytes that a path has as `%` and two digits.
fn decode(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| byte == b'%');
        let code = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(code) => {
                bytes.push(code);
                rest = &after[2..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
