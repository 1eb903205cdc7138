//! Sections by their names, and what is in them.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result, Write};

use packed::Header;
use rustix::fs::{MemfdFlags, memfd_create};

use super::{Elf, SHT_DYNSYM, SHT_SYMTAB, Section, UNPACKED_AT, invalid};

/// Maximum bytes of a symbol table, or of its names, that are unpacked.
const MOST_SYMBOL_BYTES: u64 = 256 << 20;
/// Maximum bytes of the ELF file in `.gnu_debugdata`. A browser's has 30 MB.
const MOST_MINI: u64 = 128 << 20;

/// `SHF_COMPRESSED`.
const COMPRESSED: u64 = 1 << 11;
/// `SHT_NOBITS`: the file has no bytes for it.
const NO_BITS: u32 = 8;

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

    /// The section of this name that has bytes in the file, which end in a zero byte, and
    /// how it is packed: a `.debug_…` section may be there as `.zdebug_…`.
    fn stored(&self, name: &[u8]) -> Option<(&Section, Option<Header>)> {
        let is_stored = |section: &&Section| section.kind != NO_BITS && section.size > 0;
        if let Some(section) = self.section(name).filter(is_stored) {
            return Some((section, self.header(section)));
        }
        let packed = [
            b".z",
            name.strip_prefix(b".")
                .filter(|rest| rest.starts_with(b"debug_"))?,
        ];
        let section = self.section(&packed.concat()).filter(is_stored)?;
        Some((section, Some(Header::Gnu)))
    }

    /// Returns the header before the bytes of a section, if it is packed.
    fn header(&self, section: &Section) -> Option<Header> {
        let header = if self.wide {
            Header::Elf64
        } else {
            Header::Elf32
        };
        (section.flags & COMPRESSED != 0).then_some(header)
    }

    /// Whether there is a section of this name with bytes in the file; the name ends in a
    /// zero byte.
    pub(crate) fn has_contents(&self, name: &[u8]) -> bool {
        self.stored(name).is_some()
    }

    /// The bytes of a section, unpacked; none if there is none. They are taken from `room`.
    ///
    /// # Errors
    /// They cannot be read, there is no room for them, or they are not what they claim.
    pub(crate) fn contents(&self, name: &[u8], room: &mut u64) -> Result<Vec<u8>> {
        match self.stored(name) {
            Some((section, header)) => self.read_section(section, header, room),
            None => Ok(Vec::new()),
        }
    }

    fn read_section(
        &self,
        section: &Section,
        header: Option<Header>,
        room: &mut u64,
    ) -> Result<Vec<u8>> {
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
        let Some(header) = header else {
            return Ok(bytes);
        };
        let packed = packed::Section::parse(&bytes, header).map_err(cannot_unpack)?;
        if packed.is_implausible() {
            return Err(self.allowance.refuse("a section is packed too well"));
        }
        take(room, packed.size())?;
        self.allowance.take(packed.size())?;
        packed.unpack().map_err(cannot_unpack)
    }

    /// Unpacks symbol tables and their names, and has their sections refer to the unpacked
    /// bytes: see [`Elf::unpacked`].
    ///
    /// # Errors
    /// They cannot be read, or are not what they claim.
    pub(super) fn unpack_symbols(&mut self) -> Result<()> {
        for kind in [SHT_SYMTAB, SHT_DYNSYM] {
            let table = self.sections.iter().position(|table| table.kind == kind);
            let Some(table) = table else { continue };
            for index in [table, self.sections[table].link as usize] {
                let Some(section) = self.sections.get(index) else {
                    continue;
                };
                let Some(header) = self.header(section) else {
                    continue;
                };
                let bytes =
                    self.read_section(section, Some(header), &mut MOST_SYMBOL_BYTES.clone())?;
                let offset = UNPACKED_AT + self.unpacked.len() as u64;
                self.unpacked.extend_from_slice(&bytes);
                let section = &mut self.sections[index];
                section.flags &= !COMPRESSED;
                section.offset = offset;
                section.size = bytes.len() as u64;
            }
        }
        Ok(())
    }

    /// The ELF file that `.gnu_debugdata` holds, with the symbols that `.dynsym` lacks:
    /// distributions ship stripped programs with it ("MiniDebugInfo" in gdb's manual).
    ///
    /// # Errors
    /// It cannot be read or unpacked, or takes too much work.
    pub(crate) fn mini_debug_information(&self) -> Result<Option<File>> {
        let Some((section, None)) = self.stored(b".gnu_debugdata\0") else {
            return Ok(None);
        };
        let packed = self.read_section(section, None, &mut MOST_MINI.clone())?;
        let mut file = File::from(memfd_create("symbols", MemfdFlags::CLOEXEC)?);
        let mut reader = packed::read_xz(packed);
        let mut piece = vec![0; 64 << 10];
        let mut left = MOST_MINI;
        loop {
            let read = reader.read(&mut piece)?;
            if read == 0 {
                return Ok(Some(file));
            }
            self.allowance.take(read as u64)?;
            take(&mut left, read as u64)?;
            file.write_all(&piece[..read])?;
        }
    }
}

fn cannot_unpack(why: &'static str) -> Error {
    Error::new(
        ErrorKind::InvalidData,
        format!("a section cannot be unpacked: {why}"),
    )
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
            unpacked: Vec::new(),
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
}
