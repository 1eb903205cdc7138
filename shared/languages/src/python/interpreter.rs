//! Finds an interpreter in a file, and its version.

use std::fmt;

use elf::{Elf, Source};
use process::ELF_MACHINE;

use super::{Anchoring, layout};

/// Global state of CPython: `PyRuntimeState _PyRuntime` of Python/pylifecycle.c. Extension modules
/// refer to this symbol without defining it.
const RUNTIME: &str = "_PyRuntime";
/// Version constant of 3.11 and later: `const unsigned long Py_Version`. Its value is
/// `PY_VERSION_HEX`.
const VERSION: &str = "Py_Version";

/// Function that runs Python functions, and the part of it that compilers move elsewhere. Before
/// 3.11, each call runs one Python function.
const EVALUATION: [&[u8]; 2] = [
    b"_PyEval_EvalFrameDefault",
    b"_PyEval_EvalFrameDefault.cold",
];

/// Cookie of `_Py_DebugOffsets` at the start of `_PyRuntime`, in 3.13 and later
/// (Include/internal/pycore_debug_offsets.h). The first three words of 8 bytes are the cookie,
/// `PY_VERSION_HEX`, and whether there is no global lock.
const COOKIE: [u8; 8] = *b"xdebugpy";

/// Version of CPython.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Major version, such as 3 for 3.11.
    pub major: u8,
    /// Minor version, such as 11 for 3.11.
    pub minor: u8,
    /// True for a build without the global interpreter lock (PEP 703), which has other layouts.
    pub free_threaded: bool,
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = if self.free_threaded { "t" } else { "" };
        write!(formatter, "{}.{}{suffix}", self.major, self.minor)
    }
}

/// Interpreter that a file contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interpreter {
    /// Virtual address of `_PyRuntime` in the ELF file.
    pub runtime: u64,
    /// Version of the interpreter. Its layout may be unknown.
    pub version: Version,
    /// Virtual addresses of the code that runs frames, for versions whose frames leave no anchors.
    /// Unknown addresses are zeros.
    pub evaluation: [(u64, u64); EVALUATION.len()],
}

/// Returns the interpreter that an ELF file contains. Most files contain none, which takes a few
/// small reads to find out. Before 3.11, only the file's name shows the version, such as
/// `libpython3.9.so.1.0` or `python3.8`. `file_name` may contain folders.
pub fn find(source: &(impl Source + ?Sized), file_name: &str) -> Option<Interpreter> {
    find_in_elf(&Elf::read_loaded(source).ok()?, file_name)
}

/// Returns the interpreter that an ELF file contains, from the file's variables and functions.
pub(super) fn find_in_elf<S: Source>(elf: &Elf<S>, file_name: &str) -> Option<Interpreter> {
    if !elf.header().is_for(ELF_MACHINE) {
        return None;
    }
    let runtime = elf.variable(RUNTIME)?.start;
    let offsets = DebugOffsets::read(elf, runtime);
    let number = version_constant(elf).or(offsets.as_ref().map(|offsets| offsets.version));
    let (major, minor) = match number {
        Some(number) => ((number >> 24) as u8, (number >> 16) as u8),
        None => version_in_name(file_name)?,
    };
    // Since 3.13 there are two kinds of builds. The debug offsets of each file say which kind it
    // is.
    let has_kinds = (major, minor) >= (3, 13);
    let free_threaded = has_kinds && offsets?.free_threaded;
    let version = Version {
        major,
        minor,
        free_threaded,
    };
    let mut evaluation = [(0, 0); EVALUATION.len()];
    if layout::by_version(version).is_some_and(|layout| layout.anchoring == Anchoring::Nothing) {
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

/// Returns `PY_VERSION_HEX` from the version constant.
fn version_constant<S: Source>(elf: &Elf<S>) -> Option<u32> {
    let at = elf.variable(VERSION)?;
    parse_version_hex(&elf.initial_bytes(at.start, 8)?)
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
            version: parse_version_hex(version).filter(|_| *cookie == COOKIE)?,
            free_threaded: *free_threaded != [0; 8],
        })
    }
}

/// Parses `PY_VERSION_HEX` from 8 bytes. Major, minor and micro version and the release level have
/// one byte each. The release level is never 0.
fn parse_version_hex(bytes: &[u8]) -> Option<u32> {
    let number = u64::from_le_bytes(*bytes.first_chunk()?);
    let number = u32::try_from(number).ok()?;
    (number >> 24 != 0 && number as u8 != 0).then_some(number)
}

/// Parses the version in a file name such as `libpython3.9.so.1.0`.
fn version_in_name(file_name: &str) -> Option<(u8, u8)> {
    let name = file_name.rsplit('/').next()?;
    let (_, version) = name.split_once("python")?;
    let (major, rest) = version.split_once('.')?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    Some((major.parse().ok()?, rest.get(..digits)?.parse().ok()?))
}

#[cfg(test)]
mod tests;
