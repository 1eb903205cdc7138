//! Versions of Go, and the layouts of `runtime.g` in them.

use std::fmt::{self, Display};

use elf::{Elf, Fields, Source};

use crate::layout::Layout;
use crate::memory::{Memory, word_at};

/// Maximum size of the text of a version, in bytes.
const MAX_VERSION: usize = 64;
/// Start of the section `.go.buildinfo` (`src/debug/buildinfo/buildinfo.go` of Go).
const MAGIC: &[u8] = b"\xff Go buildinf:\x08";

/// Version that built a program, such as `go1.24.4`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version(String);

impl Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Version {
    /// Reads the version of a program. `bias` is the difference between addresses in memory and in
    /// the file.
    pub(crate) fn read<S: Source>(
        elf: &Elf<S>,
        bias: u64,
        memory: &impl Memory,
    ) -> Option<Version> {
        let section = elf.section(".go.buildinfo")?;
        let size = section.size.min(32 + 1 + MAX_VERSION as u64);
        let bytes = elf.bytes("Go's version", section.offset, size).ok()?;
        if !bytes.starts_with(MAGIC) {
            return None;
        }
        let text = if Fields(&bytes).u8(15) & 2 != 0 {
            // Since Go 1.18 a length of one byte and the text follow.
            let length = usize::from(*bytes.get(32)?);
            bytes.get(33..33_usize.checked_add(length)?)?.to_vec()
        } else {
            // The address of a string, which is the address of the text and its length.
            let string = bias.wrapping_add(word_at(&bytes, 16)?);
            let header = memory.bytes(string, 16);
            let (start, length) = (word_at(&header, 0)?, word_at(&header, 8)?);
            let length = usize::try_from(length).ok().filter(|it| *it <= MAX_VERSION);
            memory.bytes(start, length?)
        };
        let is_plain = text
            .iter()
            .all(|byte| byte.is_ascii_graphic() || *byte == b' ');
        (is_plain && text.len() <= MAX_VERSION && text.starts_with(b"go1."))
            .then(|| Version(String::from_utf8_lossy(&text).into_owned()))
    }

    /// Returns the number after `go1.`.
    fn minor(&self) -> Option<u32> {
        let rest = self.0.strip_prefix("go1.")?;
        let end = rest.find(|letter: char| !letter.is_ascii_digit());
        rest[..end.unwrap_or(rest.len())].parse().ok()
    }

    /// Returns what is known about the runtime of this version.
    pub(crate) fn known(&self) -> Option<&'static Known> {
        let minor = self.minor()?;
        KNOWN.iter().find(|known| known.minor == minor)
    }
}

/// Facts about the runtime of a version on x86-64.
#[derive(Debug)]
pub(crate) struct Known {
    minor: u32,
    pub(crate) layout: Layout,
    /// Number of reasons in `runtime.waitReasonStrings`.
    pub(crate) reasons: usize,
}

const fn known(minor: u32, [bp, status, creator]: [usize; 3], reasons: usize) -> Known {
    let layout = Layout {
        stack_low: 0,
        stack_high: 8,
        sp: 56,
        pc: 64,
        itself: 72,
        bp,
        status,
        id: status + 8,
        reason: status + 32,
        creator,
    };
    Known {
        minor,
        layout,
        reasons,
    }
}

/// Versions whose debug information has been compared with these numbers. Minor releases of one
/// version have one layout.
const KNOWN: [Known; 9] = [
    known(15, [104, 144, 280], 27),
    known(19, [104, 144, 296], 27),
    known(21, [104, 144, 280], 32),
    known(22, [104, 144, 280], 37),
    known(23, [104, 152, 288], 38),
    known(24, [104, 152, 288], 44),
    known(25, [96, 144, 280], 47),
    known(26, [96, 144, 288], 47),
    known(27, [96, 144, 288], 47),
];

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
