//! Finds what is needed of a Go program in a running process.

use std::collections::BTreeSet;
use std::fs::File;
use std::ops::Range;

use elf::{Elf, Fields};
use process::{Process, ProcessMemory};
use symbolize::{CodeMapping, CodeSource, Symbolizer};
use thiserror::Error;

use crate::layout::Layout;
use crate::memory::{Memory, word_at};
use crate::sample::{MAX_GOROUTINES, Places};
use crate::versions::{Known, Version};

/// Maximum number of reasons, and the maximum size of the text of one, in bytes.
const MAX_REASONS: u64 = 256;
const MAX_REASON_BYTES: u64 = 128;
/// Size of a string's header: the address and the length.
const STRING: usize = 16;
/// Maximum size of a function that is searched for addresses, in bytes.
const MAX_FUNCTION: u64 = 4096;
/// Maximum number of addresses to which this function refers. It refers to about ten.
const MAX_REFERRED: usize = 256;
/// Maximum number of places in the data that are compared with the reasons.
const MAX_PLACES: usize = 64;
/// Maximum size of the data that are searched for reasons, in bytes.
const MAX_DATA: u64 = 64 << 20;
/// Number of looks in which the program is checked. Goroutines may start during a look.
const CHECKS: usize = 5;

/// Reason why the goroutines of a process cannot be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// No code of the process is that of a Go program.
    #[error("it is not a Go program; give the process of one, or leave out --goroutines")]
    NotGo,
    /// The list of goroutines cannot be found.
    #[error("its list of goroutines cannot be found; build it without `-ldflags=-s`")]
    NoList,
    /// The layout of a goroutine is not known.
    #[error(
        "its version of Go, {0}, is not known, and it has no debug information; \
         build it without `-ldflags=-w`"
    )]
    UnknownVersion(String),
    /// The memory does not have what the program says.
    #[error("its memory has no valid list of goroutines; try again when it has started")]
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

/// File of a Go program, and where the process has it.
struct Image<'m, M> {
    elf: Elf<File>,
    /// Difference between addresses in memory and in the file.
    bias: u64,
    memory: &'m M,
}

/// Places in the file of a Go program.
struct Variables {
    count: u64,
    list: u64,
    reasons: Range<u64>,
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
        let image = { code.iter() }.find_map(|mapping| Image::read(mapping, symbolizer, memory));
        let image = image.ok_or(Error::NotGo)?;
        let code = code.iter().map(|mapping| mapping.start..mapping.end);
        image.program(code.collect())
    }
}

impl<'m, M: Memory> Image<'m, M> {
    /// Reads the file of a mapping; `None` if it is no Go program.
    fn read(mapping: &CodeMapping, symbolizer: &Symbolizer, memory: &'m M) -> Option<Self> {
        if !matches!(mapping.source, CodeSource::File(_)) {
            return None;
        }
        let (file, _) = symbolizer.code_file(mapping.source).ok()??;
        let elf = Elf::read(file).ok()?;
        if !elf.is_go() {
            return None;
        }
        let address = elf.segments().mapped_address(mapping.offset)?;
        Some(Image {
            elf,
            bias: mapping.start.wrapping_sub(address),
            memory,
        })
    }

    fn program(&self, code: Vec<Range<u64>>) -> Result<Program, Error> {
        let version = Version::read(&self.elf, self.bias, self.memory);
        let known = version.as_ref().and_then(Version::known);
        let unknown = || {
            let version = version.as_ref().map(ToString::to_string);
            Error::UnknownVersion(
                version.unwrap_or_else(|| "which the program does not tell".to_owned()),
            )
        };
        let variables = match self.symbols() {
            Some(variables) => variables,
            None => self.search(known.ok_or_else(unknown)?)?,
        };
        let in_memory = |range: &Range<u64>| {
            self.bias.wrapping_add(range.start)..self.bias.wrapping_add(range.end)
        };
        let reasons = read_reasons(self.memory, &in_memory(&variables.reasons));
        let reasons = reasons.ok_or(Error::Invalid)?;
        let exit = self.function(&["runtime.goexit", "runtime.goexit.abi0"]);
        let places = |layout| Places {
            layout,
            count: self.bias.wrapping_add(variables.count),
            list: self.bias.wrapping_add(variables.list),
            exit: exit.as_ref().map_or(0..0, in_memory),
            code: code.clone(),
            reasons: reasons.len(),
        };
        // The table of versions takes less time than the debug information, and is checked as well.
        if let Some(places) = known.map(|known| places(known.layout))
            && places.are_valid(self.memory)
        {
            return Ok(Program { places, reasons });
        }
        let layout = Layout::read::<File>(&self.elf);
        let places = places(layout.ok_or_else(|| known.map_or_else(unknown, |_| Error::Invalid))?);
        let is_valid = places.are_valid(self.memory);
        let program = is_valid.then_some(Program { places, reasons });
        program.ok_or(Error::Invalid)
    }

    fn function(&self, names: &[&str]) -> Option<Range<u64>> {
        let is_named = |name: &[u8]| names.iter().any(|wanted| wanted.as_bytes() == name);
        self.elf.functions(is_named).into_iter().next()
    }

    /// Returns the places that the symbol table has.
    fn symbols(&self) -> Option<Variables> {
        let variable = |name: &str| self.elf.variable(name);
        // Go 1.15 has no `allgptr`. The first word of `allgs` is the same address.
        let list = variable("runtime.allgptr").or_else(|| variable("runtime.allgs"))?;
        Some(Variables {
            count: variable("runtime.allglen")?.start,
            list: list.start,
            reasons: variable("runtime.waitReasonStrings")?,
        })
    }

    /// Finds the places without symbols. The function that adds goroutines to the list refers to
    /// all variables of the list, and the memory tells which is which.
    fn search(&self, known: &Known) -> Result<Variables, Error> {
        let adds = self.function(&["runtime.allgadd"]).ok_or(Error::NoList)?;
        let referred = self.referred(&adds).ok_or(Error::NoList)?;
        let (list, count) = { 0..CHECKS }
            .find_map(|_| self.list(&referred, known))
            .ok_or(Error::NoList)?;
        let reasons = self.search_reasons(known).ok_or(Error::NoList)?;
        Ok(Variables {
            count,
            list,
            reasons,
        })
    }

    /// Returns the variables to which a function refers by their distance from its instructions,
    /// and other addresses of data.
    fn referred(&self, function: &Range<u64>) -> Option<BTreeSet<u64>> {
        let size = (function.end - function.start).min(MAX_FUNCTION);
        let code = self.elf.initial_bytes(function.start, size)?;
        let mut found = BTreeSet::new();
        for at in 0..code.len().saturating_sub(3) {
            let distance = i64::from(Fields(&code).u32(at).cast_signed());
            // An operand of up to four bytes may follow the distance.
            for rest in [4, 5, 8] {
                let next = function.start.wrapping_add(at as u64 + rest);
                let address = next.wrapping_add_signed(distance);
                if address.is_multiple_of(8) && self.elf.segments().has_data(address) {
                    found.insert(address);
                }
            }
        }
        (found.len() <= MAX_REFERRED).then_some(found)
    }

    /// Returns the addresses of the list and of its length: a slice, whose length another variable
    /// has too, and whose elements are goroutines.
    fn list(&self, referred: &BTreeSet<u64>, known: &Known) -> Option<(u64, u64)> {
        let slice_at = |address: u64| {
            let bytes = self.memory.bytes(self.bias.wrapping_add(address), 24);
            Some([
                word_at(&bytes, 0)?,
                word_at(&bytes, 8)?,
                word_at(&bytes, 16)?,
            ])
        };
        let is_goroutine = |pointer: u64| {
            let itself = pointer.checked_add(known.layout.itself as u64);
            pointer != 0 && itself.and_then(|it| self.memory.word(it)) == Some(pointer)
        };
        let words = { referred.iter() }.filter_map(|&address| Some((address, slice_at(address)?)));
        let words: Vec<(u64, [u64; 3])> = words.collect();
        let mut slices = words.iter().filter(|(_, [start, length, capacity])| {
            (1..=MAX_GOROUTINES).contains(length)
                && capacity >= length
                && self.memory.word(*start).is_some_and(is_goroutine)
        });
        let (slice, [_, length, _]) = slices.next()?;
        let own = *slice..slice.saturating_add(24);
        let mut counts =
            { words.iter() }.filter(|(other, [word, ..])| !own.contains(other) && word == length);
        let (count, _) = counts.next()?;
        // If two places fit, neither is certain.
        let is_certain = slices.next().is_none() && counts.next().is_none();
        is_certain.then_some((*slice, *count))
    }

    /// Finds the array of reasons by its first elements, which are the same in all known versions.
    fn search_reasons(&self, known: &Known) -> Option<Range<u64>> {
        const FIRST: [&str; 3] = ["", "GC assist marking", "IO wait"];
        let data = [".data", ".data.rel.ro", ".noptrdata"];
        let mut places = 0;
        let sections = data.iter().filter_map(|name| self.elf.section(name));
        for section in sections.filter(|section| section.size <= MAX_DATA) {
            let start = self.bias.wrapping_add(section.address);
            let bytes = self.memory.bytes(start, section.size as usize);
            for at in (0..bytes.len()).step_by(8) {
                let length = |index: usize| word_at(&bytes, at + index * STRING + 8);
                let fits = |(index, text): (usize, &&str)| length(index) == Some(text.len() as u64);
                if !FIRST.iter().enumerate().all(fits) {
                    continue;
                }
                places += 1;
                if places > MAX_PLACES {
                    return None;
                }
                let address = section.address.wrapping_add(at as u64);
                let array = address..address.checked_add((known.reasons * STRING) as u64)?;
                let in_memory =
                    self.bias.wrapping_add(array.start)..self.bias.wrapping_add(array.end);
                let texts = read_reasons(self.memory, &in_memory);
                if texts
                    .is_some_and(|texts| texts.iter().zip(FIRST).all(|(text, first)| text == first))
                {
                    return Some(array);
                }
            }
        }
        None
    }
}

impl Places {
    /// Returns whether the memory has valid goroutines at these places. A goroutine that is just
    /// starting is not valid yet.
    fn are_valid(&self, memory: &impl Memory) -> bool {
        { 0..CHECKS }.any(|_| {
            let look = self.look(memory);
            look.is_some_and(|look| {
                !look.stopped.is_empty() && look.invalid <= look.stopped.len() as u64 / 4
            })
        })
    }
}

/// Reads the texts of `runtime.waitReasonStrings`, an array of strings.
fn read_reasons(memory: &impl Memory, array: &Range<u64>) -> Option<Vec<String>> {
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
