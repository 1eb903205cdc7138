//! Finds what is needed of a Go program in a running process.

use std::fs::File;

use elf::Elf;
use process::{Process, ProcessMemory};
use symbolize::{CodeSource, Symbolizer};
use thiserror::Error;

use crate::layout::Layout;
use crate::memory::{Memory, word_at};
use crate::sample::Places;

/// Maximum number of reasons, and the maximum size of the text of one, in bytes.
const MAX_REASONS: u64 = 256;
const MAX_REASON_BYTES: u64 = 128;
/// Size of a string's header: the address and the length.
const STRING: usize = 16;

/// Reason why the goroutines of a process cannot be read.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// No program of the process has Go's list of goroutines.
    #[error("it is no Go program with a symbol table; build it without `-ldflags=-s`")]
    NoList,
    /// The layout of a goroutine is not known.
    #[error("it has no debug information about goroutines; build it without `-ldflags=-w`")]
    NoLayout,
    /// The memory does not have what the program says.
    #[error("its memory has no valid list of goroutines")]
    Invalid,
    /// The thread that reads goroutines cannot be started.
    #[error("no thread can be started for it")]
    NoThread,
}

/// Go program in a running process.
pub(crate) struct Program {
    pub(crate) places: Places,
    /// Text of each reason, by its number.
    pub(crate) reasons: Vec<String>,
}

impl Program {
    /// Finds the program, and checks that its goroutines can be read.
    pub(crate) fn find(
        process: Process,
        symbolizer: &mut Symbolizer,
        memory: &ProcessMemory,
    ) -> Result<Program, Error> {
        symbolizer.watch(process);
        let code = symbolizer.code(process);
        let mut found = None;
        for mapping in &code {
            if matches!(mapping.source, CodeSource::File(_))
                && let Ok(Some((file, _))) = symbolizer.code_file(mapping.source)
                && let Ok(elf) = Elf::read(file)
                && elf.variable("runtime.allgptr").is_some()
            {
                let bias = elf.segments().biases(mapping.offset, mapping.start).next();
                found = bias.map(|bias| (elf, bias));
                break;
            }
        }
        let (elf, bias) = found.ok_or(Error::NoList)?;
        let address = |name: &str| {
            let range = elf.variable(name).ok_or(Error::NoList)?;
            Ok(bias.wrapping_add(range.start)..bias.wrapping_add(range.end))
        };
        let reasons = read_reasons(memory, &address("runtime.waitReasonStrings")?);
        let reasons = reasons.ok_or(Error::Invalid)?;
        let exits = ["runtime.goexit", "runtime.goexit.abi0"];
        let exit = elf.functions(|name| exits.iter().any(|exit| exit.as_bytes() == name));
        let exit = exit.first().ok_or(Error::NoList)?;
        let places = Places {
            layout: Layout::read::<File>(&elf).ok_or(Error::NoLayout)?,
            count: address("runtime.allglen")?.start,
            list: address("runtime.allgptr")?.start,
            exit: bias.wrapping_add(exit.start)..bias.wrapping_add(exit.end),
            code: code
                .iter()
                .map(|mapping| mapping.start..mapping.end)
                .collect(),
            reasons: reasons.len(),
        };
        let look = places.look(memory).ok_or(Error::Invalid)?;
        // The runtime's own goroutines always wait, except one that has just begun to run.
        if look.invalid > look.stopped.len() as u64 / 4 || look.stopped.is_empty() {
            return Err(Error::Invalid);
        }
        Ok(Program { places, reasons })
    }
}

/// Reads the texts of `runtime.waitReasonStrings`, an array of strings.
fn read_reasons(memory: &impl Memory, array: &std::ops::Range<u64>) -> Option<Vec<String>> {
    let count = array.end.checked_sub(array.start)? / STRING as u64;
    if count == 0 || count > MAX_REASONS {
        return None;
    }
    let bytes = memory.bytes(array.start, count as usize * STRING);
    let texts = bytes.chunks_exact(STRING).map(|header| {
        let (start, length) = (word_at(header, 0)?, word_at(header, 8)?);
        if length > MAX_REASON_BYTES {
            return None;
        }
        let text = memory.bytes(start, length as usize);
        let is_plain = |byte: &u8| byte.is_ascii_graphic() && !b";[]".contains(byte);
        let is_text =
            text.len() as u64 == length && text.iter().all(|byte| is_plain(byte) || *byte == b' ');
        is_text.then(|| String::from_utf8_lossy(&text).into_owned())
    });
    let texts: Option<Vec<String>> = texts.collect();
    texts.filter(|texts| texts.len() as u64 == count)
}
