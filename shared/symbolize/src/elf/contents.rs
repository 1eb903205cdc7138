//! Sections by their names, and what is in them.

use std::io::Result;

use super::{Elf, Fields, Section, invalid};

/// `SHF_COMPRESSED`.
const COMPRESSED: u64 = 1 << 11;
/// `SHT_NOBITS`: the file has no bytes for it.
const NO_BITS: u32 = 8;
/// `ch_type`: how it is compressed.
const ZLIB: u32 = 1;
const ZSTD: u32 = 2;
/// Bytes that one packed byte becomes at most, a bound above which there is no debug
/// information: compilers' becomes 3 to 20.
const MOST_UNPACKED: u64 = 100;

impl Elf<'_> {
    /// The section of a name, which ends in a zero byte here.
    pub(super) fn section(&self, name: &[u8]) -> Option<&Section> {
        let names = self.sections.get(self.section_names)?;
        let mut sections = self.sections.iter();
        sections.find(|section| {
            let at = names.offset.saturating_add(section.name.into());
            self.has_text(at, name)
        })
    }

    /// Whether this text is at an offset in the file. Of a name in a file there
    /// may be thousands of sections: no more of it is read than this takes.
    fn has_text(&self, offset: u64, text: &[u8]) -> bool {
        self.bytes(offset, text.len() as u64)
            .is_ok_and(|read| read == text)
    }

    /// Whether there is a section of this name with bytes in the file; the name ends in a
    /// zero byte.
    pub(crate) fn has_contents(&self, name: &[u8]) -> bool {
        let section = self.section(name);
        section.is_some_and(|section| section.kind != NO_BITS && section.size > 0)
    }

    /// The bytes of a section, unpacked; none if there is none. They are taken from `room`.
    ///
    /// # Errors
    /// They cannot be read, there is no room for them, or they are not what they claim.
    pub(crate) fn contents(&self, name: &[u8], room: &mut u64) -> Result<Vec<u8>> {
        let section = match self.section(name) {
            Some(section) if section.kind != NO_BITS => section,
            _ => return Ok(Vec::new()),
        };
        take(room, section.size)?;
        let length = self.file.metadata()?.len();
        if section
            .offset
            .checked_add(section.size)
            .is_none_or(|end| end > length)
        {
            return Err(invalid("a section beyond the end of the file"));
        }
        let bytes = self.bytes(section.offset, section.size)?;
        if section.flags & COMPRESSED == 0 {
            return Ok(bytes);
        }
        let header = if self.wide { 24 } else { 12 };
        let (header, packed) = (bytes.split_at_checked(header))
            .ok_or_else(|| invalid("a packed section without a header"))?;
        let header = Fields(header);
        let size = header.address(self.wide, (8, 4));
        if size / MOST_UNPACKED > packed.len() as u64 {
            return Err(self.allowance.refuse("a section is packed too well"));
        }
        take(room, size)?;
        self.allowance.take(size)?;
        let unpacked = match header.word(0) {
            ZLIB => miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(packed, size as usize)
                .map_err(|_| invalid("a packed section that is not zlib's"))?,
            ZSTD => zstd::bulk::decompress(packed, size as usize)?,
            _ => return Err(invalid("a section packed in an unknown way")),
        };
        match unpacked.len() as u64 == size {
            true => Ok(unpacked),
            false => Err(invalid("a packed section of another size than it says")),
        }
    }
}

fn take(room: &mut u64, size: u64) -> Result<()> {
    *room = room
        .checked_sub(size)
        .ok_or_else(|| invalid("too much debug information"))?;
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::{ErrorKind, Write};

    use super::*;
    use crate::budget::Allowance;

    const PROGRAM_BITS: u32 = 1;

    /// Asks a file that has the section's name and then its contents.
    fn ask<T>(section: Section, contents: &[u8], question: impl FnOnce(&Elf<'_>) -> T) -> T {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[b"name\0", contents].concat()).unwrap();
        let mut names = section_of(3, 0, 5);
        names.offset = 0;
        let allowance = Allowance::alone();
        let elf = Elf {
            file: &file,
            allowance: &allowance,
            wide: true,
            segments: Vec::new(),
            sections: vec![section, names],
            section_names: 1,
        };
        question(&elf)
    }

    fn section_of(kind: u32, flags: u64, size: usize) -> Section {
        Section {
            name: 0,
            kind,
            flags,
            offset: 5,
            size: size as u64,
            link: 0,
        }
    }

    #[test]
    fn contents_are_read_up_to_the_end_of_the_file_if_there_is_room() {
        let read = |kind: u32, size: usize, mut room: u64| {
            let section = section_of(kind, 0, size);
            let read = ask(section, b"some", |elf| elf.contents(b"name\0", &mut room));
            read.map_err(|error| error.kind()).map(|read| (read, room))
        };
        assert_eq!(read(PROGRAM_BITS, 4, 6), Ok((b"some".to_vec(), 2)));
        assert_eq!(read(PROGRAM_BITS, 4, 4), Ok((b"some".to_vec(), 0)));
        assert_eq!(read(PROGRAM_BITS, 4, 3), Err(ErrorKind::InvalidData));
        assert_eq!(read(PROGRAM_BITS, 5, 6), Err(ErrorKind::InvalidData));
        assert_eq!(read(PROGRAM_BITS, 6, 6), Err(ErrorKind::InvalidData));
        assert_eq!(read(NO_BITS, 4, 6), Ok((Vec::new(), 6)));
    }

    #[test]
    fn contents_are_unpacked() {
        let text = b"text ".repeat(100);
        let read = |kind: u32, packed: &[u8]| {
            let header = [u64::from(kind), text.len() as u64, 1].map(u64::to_le_bytes);
            let contents = [&header.concat(), packed].concat();
            let section = section_of(PROGRAM_BITS, COMPRESSED, contents.len());
            let room = &mut (1 << 20);
            ask(section, &contents, |elf| elf.contents(b"name\0", room)).ok()
        };
        let zlib = miniz_oxide::deflate::compress_to_vec_zlib(&text, 6);
        let zstd = zstd::bulk::compress(&text, 0).unwrap();
        assert_eq!(read(ZLIB, &zlib), Some(text.clone()));
        assert_eq!(read(ZSTD, &zstd), Some(text.clone()));
        assert_eq!(read(3, &text), None);
    }
}
