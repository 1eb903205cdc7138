//! Links from a program to its debug file: the build ID, the debug link, and the debug file inside
//! the program.

use std::io::Read;

use crate::compressed::xz;
use crate::error::Error;
use crate::layout::{Fields, NT_GNU_BUILD_ID, PT_NOTE, SHT_NOTE};
use crate::reader::Elf;
use crate::source::Source;
use crate::symbols::NAME_LIMIT;

/// Maximum size of a section or segment of notes, in bytes.
const NOTES_LIMIT: u64 = 64 << 10;
/// Maximum number of sections and segments of notes that are read.
const PLACES_LIMIT: usize = 64;
/// Maximum size of `.gnu_debugdata`, and of the ELF file in it, in bytes. A browser has one of 30
/// MB.
const MINI_LIMIT: u64 = 64 << 20;
/// Number of bytes that are decompressed at a time.
const PIECE: usize = 64 << 10;

const MINI: &str = ".gnu_debugdata";

impl<S: Source> Elf<S> {
    /// Returns the GNU build ID, which names this build of the program.
    pub fn build_id(&self) -> Option<Vec<u8>> {
        // The note segment of a debug file has no contents, but the note section does.
        let sections = self.sections().iter().filter(|s| s.kind == SHT_NOTE);
        let segments = self.segments().iter().filter(|s| s.kind == PT_NOTE);
        let segments = segments.map(|s| (s.offset, s.size));
        let places = sections.map(|s| (s.offset, s.size)).chain(segments);
        places
            .filter(|(_, size)| *size <= NOTES_LIMIT)
            .take(PLACES_LIMIT)
            .filter_map(|(offset, size)| self.bytes("notes", offset, size).ok())
            .find_map(|notes| find_build_id(&notes))
    }

    /// Returns the name and the CRC-32 of the debug file, from `.gnu_debuglink`.
    pub fn debug_link(&self) -> Option<(String, u32)> {
        let what = ".gnu_debuglink";
        let section = self.section(what)?;
        // The checksum follows the name and its zero byte, at an offset that is a multiple of 4.
        let size = section.size.min(NAME_LIMIT as u64 + 8);
        let bytes = self.bytes(what, section.offset, size).ok()?;
        let end = bytes.iter().take(NAME_LIMIT).position(|&byte| byte == 0)?;
        let name = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let checksum = bytes.get((end + 1).next_multiple_of(4)..)?;
        let is_whole = !name.is_empty() && checksum.len() >= 4;
        is_whole.then(|| (name, Fields(checksum).u32(0)))
    }

    /// Returns whether the file contains an ELF file in `.gnu_debugdata` ("MiniDebugInfo" in gdb's
    /// manual). Distributions add it to stripped programs. It has `.debug_frame`, and the symbols
    /// that `.dynsym` lacks.
    pub fn has_mini_debug_information(&self) -> bool {
        self.has_contents(MINI)
    }

    /// Decompresses the ELF file in `.gnu_debugdata`, and passes its pieces to `take` in order. See
    /// [`Elf::has_mini_debug_information`].
    ///
    /// # Errors
    /// The section cannot be read or decompressed, or `take` fails.
    pub fn mini_debug_information<E: From<Error>>(
        &self,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let compressed = self.contents(MINI, &mut MINI_LIMIT.clone())?;
        let mut reader = xz::read(compressed);
        let mut piece = vec![0; PIECE];
        let mut size = 0;
        loop {
            let read = reader.read(&mut piece).map_err(|_| Error::Compressed {
                what: MINI,
                reason: "its data are not xz data, or decompress to implausibly many bytes",
            })?;
            if read == 0 {
                return Ok(());
            }
            self.charge(MINI, read as u64)?;
            size += read as u64;
            Error::limit(MINI, size, MINI_LIMIT)?;
            take(&piece[..read])?;
        }
    }
}

/// Finds the build ID in the bytes of ELF notes. A note has the size of its name, the size of its
/// contents, and its type. Name and contents follow, each at an offset that is a multiple of 4.
pub fn find_build_id(mut notes: &[u8]) -> Option<Vec<u8>> {
    const HEADER: usize = 12;
    while notes.len() >= HEADER {
        let header = Fields(notes);
        let name_end = HEADER + (header.u32(0) as usize).next_multiple_of(4);
        let contents = notes.get(name_end..)?;
        let size = header.u32(4) as usize;
        if header.u32(8) == NT_GNU_BUILD_ID && notes[HEADER..].starts_with(b"GNU\0") {
            return contents.get(..size).map(<[u8]>::to_vec);
        }
        notes = contents.get(size.next_multiple_of(4)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(kind: u32, name: &[u8; 4], contents: &[u8]) -> Vec<u8> {
        let mut note = Vec::new();
        for word in [4, contents.len() as u32, kind] {
            note.extend(word.to_le_bytes());
        }
        [&note[..], name, contents].concat()
    }

    #[test]
    fn build_id_is_found_behind_other_notes() {
        let notes = [note(5, b"GNU\0", &[0; 8]), note(3, b"GNU\0", &[0xab; 20])].concat();
        assert_eq!(find_build_id(&notes), Some(vec![0xab; 20]));
        assert_eq!(find_build_id(&notes[..40]), None);
        assert_eq!(find_build_id(&[0xff; 64]), None);
    }
}
