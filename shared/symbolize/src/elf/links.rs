//! What leads from a program to its debug file: build ID and debug link.

use super::{Elf, Fields};

/// Longest section or segment of notes read here.
const MOST_BYTES: u64 = 64 << 10;
/// How many of them are looked at.
const MOST_PLACES: usize = 64;

const PT_NOTE: u32 = 4;
const SHT_NOTE: u32 = 7;
const NT_GNU_BUILD_ID: u32 = 3;

impl Elf<'_> {
    /// The GNU build ID, which names this build of the program.
    pub(crate) fn build_id(&self) -> Option<Vec<u8>> {
        // Debug files have a note segment without contents, but the section.
        let segments = self.segments.iter().filter(|s| s.kind == PT_NOTE);
        let sections = self.sections.iter().filter(|s| s.kind == SHT_NOTE);
        let segments = segments.map(|s| (s.offset, s.size));
        let places = sections.map(|s| (s.offset, s.size)).chain(segments);
        places
            .filter(|(_, size)| *size <= MOST_BYTES)
            .take(MOST_PLACES)
            .filter_map(|(offset, size)| self.bytes(offset, size).ok())
            .find_map(|notes| find_build_id(&notes))
    }

    /// The `.gnu_debuglink` section: name and CRC-32 of the debug file.
    pub(crate) fn debug_link(&self) -> Option<(String, u32)> {
        let section = self.section(b".gnu_debuglink\0")?;
        let name = self.name(section.offset)?;
        // The checksum follows the name and its zero byte, 4-aligned.
        let at = (name.len() + 1).next_multiple_of(4) as u64;
        let checksum = self.bytes(section.offset.checked_add(at)?, 4).ok()?;
        Some((name, Fields(&checksum).word(0)))
    }
}

/// Finds the build ID among ELF notes: each has name size, contents size,
/// type, then name and contents, both 4-aligned.
pub(crate) fn find_build_id(mut notes: &[u8]) -> Option<Vec<u8>> {
    while notes.len() >= 12 {
        let header = Fields(notes);
        let name_end = 12 + (header.word(0) as usize).next_multiple_of(4);
        let contents = notes.get(name_end..)?;
        let size = header.word(4) as usize;
        if header.word(8) == NT_GNU_BUILD_ID && notes[12..].starts_with(b"GNU\0") {
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
