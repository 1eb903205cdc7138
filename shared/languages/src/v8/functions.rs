//! Descriptions of functions: `SharedFunctionInfo` and `ScopeInfo`.

use std::sync::Arc;

use super::heap::{Heap, is_object, keep, small_integer};
use super::positions::{Position, position};
use super::scripts::Script;
use crate::language::Function;

/// Offset of the code in a `SharedFunctionInfo`, and size of the fields that are read.
const CODE: usize = 8;
const INFO_SIZE: usize = 48;
/// Offset of the bytecode in an `InterpreterData`.
const DATA_BYTECODE: u64 = 8;

/// Maximum number of characters of a name.
const NAME_LIMIT: u64 = 4096;
/// Name of a function without a name. Its first line, if it is known, distinguishes it from others
/// in the file.
fn anonymous(first_line: u32) -> String {
    match first_line {
        0 => "(anonymous)".to_owned(),
        line => format!("(anonymous:{line})"),
    }
}

/// Function of a program, or built into V8.
#[derive(Debug)]
pub(super) struct JsFunction {
    pub(super) name: String,
    pub(super) script: Option<Arc<Script>>,
    /// First line, starting at 1; 0 if it is unknown.
    first_line: u32,
    /// False if the script could not be read yet.
    is_whole: bool,
    /// Table of positions of the bytecode.
    positions: Option<Vec<u8>>,
    has_unsigned_deltas: bool,
}

impl JsFunction {
    /// Returns the line of a position.
    pub(super) fn line_at(&self, position: Position) -> Option<u32> {
        self.script.as_ref()?.line(position.offset?)
    }
}

impl Function for JsFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn file(&self) -> &str {
        self.script.as_ref().map_or("", |script| &script.name)
    }

    fn first_line(&self) -> u32 {
        self.first_line
    }

    fn line(&self, instruction: i32) -> Option<u32> {
        let offset = u32::try_from(instruction).ok()?;
        let table = self.positions.as_ref()?;
        self.line_at(Position::new(position(
            table,
            offset,
            self.has_unsigned_deltas,
        )?))
    }

    fn has_lines(&self) -> bool {
        self.is_whole
    }

    fn size(&self) -> usize {
        let positions = self.positions.as_ref().map_or(0, Vec::len);
        size_of::<JsFunction>() + self.name.len() + positions
    }
}

/// Fields of a `SharedFunctionInfo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Info {
    pub(super) code: u64,
    name: u64,
    script: u64,
}

impl Info {
    /// Returns the checksum that distinguishes a function from a later one at the same address.
    /// `bpf/include/languages/v8.h` computes the same checksum.
    pub(super) fn checksum(self) -> u32 {
        checksum(self.name, self.script)
    }
}

/// Returns the checksum of the words for the name and the script of a function.
pub(super) fn checksum(name: u64, script: u64) -> u32 {
    ([name, script].into_iter().fold(0, hash_word) >> 32) as u32
}

/// Adds a word to a hash, like `hash_word` of `bpf/include/events.h`.
fn hash_word(hash: u64, word: u64) -> u64 {
    let hash = (hash ^ word).wrapping_mul(0x9fb2_1c65_1e98_df25);
    hash ^ hash >> 29
}

impl Heap<'_> {
    /// Reads the `SharedFunctionInfo` at an address; `None` if there is none.
    pub(super) fn info(&mut self, address: u64) -> Option<Info> {
        if !address.is_multiple_of(8) {
            return None;
        }
        let bytes = self.bytes(address, INFO_SIZE)?;
        self.info_in(&bytes)
    }

    /// Parses a `SharedFunctionInfo`.
    fn info_in(&mut self, bytes: &[u8]) -> Option<Info> {
        let word = |offset: usize| {
            let bytes = bytes.get(offset..)?;
            Some(u64::from_le_bytes(*bytes.first_chunk()?))
        };
        if self.kind_of_map(word(0)?)? != self.layout.types.info {
            return None;
        }
        Some(Info {
            code: word(CODE)?,
            name: word(self.layout.info_name.into())?,
            script: word(self.layout.info_script.into())?,
        })
    }

    /// Reads the function whose `SharedFunctionInfo` is at an address; `None` if it cannot be read,
    /// or if another function is there now.
    pub(super) fn function(&mut self, address: u64, checksum: u32) -> Option<Arc<JsFunction>> {
        let key = (address, checksum);
        if let Some(known) = self.state.functions.get(&key) {
            return Some(Arc::clone(known));
        }
        let info = self
            .info(address)
            .filter(|info| info.checksum() == checksum)?;
        let (name, start) = self.name(info.name)?;
        let has_script = self.script_of(info.script).is_some();
        let mut script = self.script(info.script);
        let mut is_whole = script.is_some() || !has_script;
        if !is_whole {
            // V8 may have moved the source meanwhile.
            self.pieces.forget();
            script = self.script(info.script);
            is_whole = script.is_some() || !self.may_try_again(key);
        }
        let first_line = script.as_ref().zip(start);
        let first_line = first_line.and_then(|(script, start)| script.line(start));
        let first_line = first_line.unwrap_or(0);
        let name = if name.is_empty() {
            anonymous(first_line)
        } else {
            name
        };
        let positions = self.bytecode(info.code).and_then(|bytecode| {
            let offset = self.layout.bytecode_positions.into();
            let table = self.word(bytecode, offset)?;
            self.byte_array(table)
        });
        // The process may have replaced the function during the read.
        let now = self.memory.bytes(address, INFO_SIZE);
        if self.info_in(&now)?.checksum() != checksum {
            return None;
        }
        let function = Arc::new(JsFunction {
            name,
            is_whole,
            script,
            first_line,
            positions,
            has_unsigned_deltas: self.layout.has_unsigned_deltas,
        });
        if function.is_whole {
            keep(&mut self.state.functions, key, Arc::clone(&function));
        }
        Some(function)
    }

    /// Counts a read of a function's script that failed. Returns whether the next one may succeed.
    /// Some scripts are too long to be read at all.
    fn may_try_again(&mut self, key: (u64, u32)) -> bool {
        const TRIES: u32 = 4;
        let tries = self.state.failed_reads.get(&key).copied().unwrap_or(0) + 1;
        keep(&mut self.state.failed_reads, key, tries);
        tries < TRIES && self.state.failed_reads.contains_key(&key)
    }

    /// Returns the bytecode to which the code of a function leads.
    pub(super) fn bytecode(&mut self, code: u64) -> Option<u64> {
        /// A function's code leads to its `InterpreterData`, and that to its bytecode.
        const STEPS: usize = 3;
        let mut object = code;
        for _ in 0..STEPS {
            let kind = self.kind(object)?;
            let types = &self.layout.types;
            if kind == types.bytecode {
                return Some(object);
            } else if kind == types.interpreter_data {
                object = self.word(object, DATA_BYTECODE)?;
            } else if kind == types.code {
                object = self.word(object, self.layout.code_data.into())?;
            } else {
                return None;
            }
        }
        None
    }

    /// Returns the name of a function, from its string or its scope, and the position of its
    /// beginning, if it is known. The name is empty if the function has none.
    fn name(&mut self, word: u64) -> Option<(String, Option<u32>)> {
        if !is_object(word) {
            Some((String::new(), None))
        } else if self.kind(word)? == self.layout.types.scope_info {
            self.name_in_scope(word)
        } else {
            Some((self.string(word, NAME_LIMIT)?, None))
        }
    }

    /// Returns the name that a scope has for its function (src/objects/scope-info.tq): the name in
    /// the source, else the name that V8 inferred. Also returns where the scope begins.
    fn name_in_scope(&mut self, scope: u64) -> Option<(String, Option<u32>)> {
        /// Largest number of locals whose names are in the scope itself.
        const LOCALS_IN_PLACE: u64 = 75;
        const LOCALS: u64 = 24;
        let flags = self.word(scope, 8)?;
        let flags = if self.layout.scope_flags_are_smi {
            small_integer(flags)?.cast_unsigned()
        } else {
            flags as u32
        };
        let locals = u64::try_from(small_integer(self.word(scope, LOCALS)?)?).ok()?;
        let mut slot = 1 + self.layout.scope_first;
        slot += u64::from(flags & 15 == self.layout.scope_module);
        // The names of many locals are in one table.
        let names = if locals < LOCALS_IN_PLACE { locals } else { 1 };
        slot += names + locals;
        slot += u64::from(flags >> 10 & 1);
        let mut name = String::new();
        if flags >> 12 & 3 != 0 {
            name = self.name_in_slot(scope, slot)?;
            slot += 2;
        }
        if flags >> 14 & 1 == 1 {
            if name.is_empty() {
                name = self.name_in_slot(scope, slot)?;
            }
            slot += 1;
        }
        // The type of a scope of eval() is two less than that of a module.
        if name.is_empty() && flags & 15 == self.layout.scope_module - 2 {
            name = "eval".to_owned();
        }
        let kind = flags >> 17 & 31;
        match self.layout.initializers {
            (0, 0) => {}
            (instance, _) if kind == instance => name = "<instance_members_initializer>".to_owned(),
            (_, class) if kind == class => name = "<static_initializer>".to_owned(),
            _ => {}
        }
        let start = self.layout.scope_start.unwrap_or(slot);
        let start = self.word(scope, 8 * start).and_then(small_integer);
        Some((name, start.and_then(|start| u32::try_from(start).ok())))
    }

    /// Returns the string in a slot of a scope. The name is empty if the slot has no string.
    fn name_in_slot(&mut self, scope: u64, slot: u64) -> Option<String> {
        let word = self.word(scope, 8 * slot)?;
        if self.is_string(word) {
            self.string(word, NAME_LIMIT)
        } else {
            Some(String::new())
        }
    }
}
