//! Which files are or have an interpreter, and of which version.

use std::fmt;

use elf::{Elf, Source};
use process::ELF_MACHINE;

use super::{Anchoring, layout};

/// `PyRuntimeState _PyRuntime` of Python/pylifecycle.c: what is global. Extension
/// modules refer to it, which does not define it.
const RUNTIME: &str = "_PyRuntime";
/// `const unsigned long Py_Version` of 3.11 and later: `PY_VERSION_HEX`.
const VERSION: &str = "Py_Version";

/// The function that runs Python functions, one each time before 3.11, and the part of
/// it that compilers put apart.
const EVALUATION: [&[u8]; 2] = [
    b"_PyEval_EvalFrameDefault",
    b"_PyEval_EvalFrameDefault.cold",
];

/// `_Py_DebugOffsets` of 3.13 and later (Include/internal/pycore_debug_offsets.h), at
/// the beginning of `_PyRuntime`: this, `PY_VERSION_HEX`, and whether there is no
/// global lock, in words of 8 bytes.
const COOKIE: [u8; 8] = *b"xdebugpy";

/// A version of CPython's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// 3 of 3.11.
    pub major: u8,
    /// 11 of 3.11.
    pub minor: u8,
    /// Whether it was built without the global interpreter lock (PEP 703), and so
    /// has other layouts.
    pub free_threaded: bool,
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = if self.free_threaded { "t" } else { "" };
        write!(formatter, "{}.{}{suffix}", self.major, self.minor)
    }
}

/// An interpreter in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interpreter {
    /// Virtual address of `_PyRuntime` as the ELF file has it.
    pub runtime: u64,
    /// Its version, which need not be one that has a layout.
    pub version: Version,
    /// Where frames of this version do not tell which native frame runs them: virtual
    /// addresses of the code that does; empty if they are not known.
    pub evaluation: [(u64, u64); EVALUATION.len()],
}

/// The interpreter that an ELF file is or has. For most files, which have none, this
/// takes a few small reads. Before 3.11 the version is known by the file's name only,
/// such as `libpython3.9.so.1.0` or `python3.8`, with its folders or without.
pub fn find(source: &(impl Source + ?Sized), file_name: &str) -> Option<Interpreter> {
    in_file(&Elf::read_loaded(source).ok()?, file_name)
}

/// Returns the same of a file's variables and functions.
pub(super) fn in_file<S: Source>(elf: &Elf<S>, file_name: &str) -> Option<Interpreter> {
    if !elf.header().is_for(ELF_MACHINE) {
        return None;
    }
    let runtime = elf.variable(RUNTIME)?.start;
    let offsets = DebugOffsets::read(elf, runtime);
    let number = stated(elf).or(offsets.as_ref().map(|offsets| offsets.version));
    let (major, minor) = match number {
        Some(number) => ((number >> 24) as u8, (number >> 16) as u8),
        None => named(file_name)?,
    };
    // Since there are two kinds, each says which it is.
    let has_kinds = (major, minor) >= (3, 13);
    let free_threaded = has_kinds && offsets?.free_threaded;
    let version = Version {
        major,
        minor,
        free_threaded,
    };
    let mut evaluation = [(0, 0); EVALUATION.len()];
    if layout::of(version).is_some_and(|layout| layout.anchoring == Anchoring::Nothing) {
        let found = elf.functions(|name| EVALUATION.contains(&name));
        for (place, range) in evaluation.iter_mut().zip(found) {
            *place = (range.start, range.end);
        }
    }
    Some(Interpreter {
        runtime,
        version,
        evaluation,
    })
}

/// `PY_VERSION_HEX` as a constant has it.
fn stated<S: Source>(elf: &Elf<S>) -> Option<u32> {
    let at = elf.variable(VERSION)?;
    hexadecimal(&elf.initial_bytes(at.start, 8)?)
}

struct DebugOffsets {
    version: u32,
    free_threaded: bool,
}

impl DebugOffsets {
    fn read<S: Source>(elf: &Elf<S>, runtime: u64) -> Option<DebugOffsets> {
        let bytes = elf.initial_bytes(runtime, 24)?;
        let (words, _) = bytes.as_chunks::<8>();
        let [cookie, version, free_threaded] = words else {
            return None;
        };
        Some(DebugOffsets {
            version: hexadecimal(version).filter(|_| *cookie == COOKIE)?,
            free_threaded: *free_threaded != [0; 8],
        })
    }
}

/// `PY_VERSION_HEX` of 8 bytes: one byte each for major, minor and micro version, and
/// one for the release level, which is never 0.
fn hexadecimal(bytes: &[u8]) -> Option<u32> {
    let number = u64::from_le_bytes(*bytes.first_chunk()?);
    let number = u32::try_from(number).ok()?;
    (number >> 24 != 0 && number as u8 != 0).then_some(number)
}

/// The version in a name such as `libpython3.9.so.1.0`.
fn named(file_name: &str) -> Option<(u8, u8)> {
    let name = file_name.rsplit('/').next()?;
    let (_, version) = name.split_once("python")?;
    let (major, rest) = version.split_once('.')?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    Some((major.parse().ok()?, rest.get(..digits)?.parse().ok()?))
}

#[cfg(test)]
mod tests;
