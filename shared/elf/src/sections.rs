//! Section headers, and lookup of sections by name.

use std::ops::Range;

use crate::compressed;
use crate::error::Error;
use crate::headers::Header;
use crate::layout::{
    Fields, SECTION_SIZE, SECTION_SIZE_32, SHF_COMPRESSED, SHN_XINDEX, SHT_NOBITS,
};
use crate::source::{Bounded, Source};

/// Maximum number of section headers.
const SECTION_LIMIT: u64 = 64 << 10;
/// Maximum size of all section names, in bytes. Linked files have a few hundred bytes.
const NAMES_LIMIT: u64 = 1 << 20;
/// Maximum number of bytes that are compared of a section's name. All names that callers look up
/// are shorter.
const NAME_LIMIT: usize = 64;

/// Section header, `Elf64_Shdr` or `Elf32_Shdr`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// Offset of the name in the section with names, in bytes.
    pub name: u32,
    /// Type, `SHT_...`.
    pub kind: u32,
    /// Flags, `SHF_...`.
    pub flags: u64,
    /// Virtual address; 0 if the section is not loaded.
    pub address: u64,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Size in the file, in bytes. For a section without bytes in the file, size in memory.
    pub size: u64,
    /// Index of the section that this section refers to.
    pub link: u32,
}

impl Section {
    fn new(bytes: &[u8], is_64_bit: bool) -> Section {
        let fields = Fields(bytes);
        let word = |at, at_32| fields.word(is_64_bit, at, at_32);
        Section {
            name: fields.u32(0),
            kind: fields.u32(4),
            flags: word(8, 8),
            address: word(16, 12),
            offset: word(24, 16),
            size: word(32, 20),
            link: fields.u32(if is_64_bit { 40 } else { 24 }),
        }
    }

    /// Returns whether the section has bytes in the file.
    pub fn is_in_file(&self) -> bool {
        self.kind != SHT_NOBITS
    }

    /// Returns the virtual addresses of the section, if they do not overflow.
    pub fn range(&self) -> Option<Range<u64>> {
        Some(self.address..self.address.checked_add(self.size)?)
    }
}

/// All section headers of a file, and their names.
#[derive(Default)]
pub(crate) struct Sections {
    is_64_bit: bool,
    all: Vec<Section>,
    names: Vec<u8>,
}

impl Sections {
    /// Reads all section headers. A file without section headers is valid, but has no symbols.
    pub(crate) fn read<S: Source>(file: &Bounded<S>, header: &Header) -> Result<Sections, Error> {
        let (table, is_64_bit) = (header.sections, header.is_64_bit);
        if table.offset == 0 {
            return Ok(Sections::default());
        }
        let what = "section headers";
        let size = if is_64_bit {
            SECTION_SIZE
        } else {
            SECTION_SIZE_32
        };
        table.check(what, size)?;
        // The first section contains the numbers that are too large for the ELF header.
        let count = match table.count {
            0 => {
                let first = file.bytes(what, table.offset, size as u64)?;
                Section::new(&first, is_64_bit).size
            }
            count => count.into(),
        };
        Error::limit(what, count, SECTION_LIMIT)?;
        let bytes = file.bytes(what, table.offset, count * size as u64)?;
        let sections = bytes.chunks_exact(size);
        let all: Vec<Section> = sections
            .map(|bytes| Section::new(bytes, is_64_bit))
            .collect();
        let names = match header.section_names {
            SHN_XINDEX => all.first().map_or(0, |first| first.link as usize),
            index => index.into(),
        };
        let names = all
            .get(names)
            .filter(|names| names.is_in_file() && names.size <= NAMES_LIMIT);
        let names = names.and_then(|names| {
            let read = file.bytes("section names", names.offset, names.size);
            read.ok()
        });
        Ok(Sections {
            is_64_bit,
            all,
            names: names.unwrap_or_default(),
        })
    }

    pub(crate) fn all(&self) -> &[Section] {
        &self.all
    }

    /// Returns the section with this name, if it has bytes in the file.
    pub(crate) fn find(&self, name: &str) -> Option<&Section> {
        self.find_by(|found| found == name.as_bytes())
    }

    /// Returns the section with the contents for this name, if there are any. If the contents are
    /// compressed, also returns the header before them. In the file, a section `.debug_…` may have
    /// the name `.zdebug_…`.
    pub(crate) fn find_contents(
        &self,
        name: &str,
    ) -> Option<(&Section, Option<compressed::Header>)> {
        if let Some(section) = self.find(name).filter(|section| section.size > 0) {
            return Some((section, self.compression(section)));
        }
        let rest = name
            .strip_prefix('.')
            .filter(|rest| rest.starts_with("debug_"))?;
        let section = self.find_by(|found| found.strip_prefix(b".z") == Some(rest.as_bytes()))?;
        (section.size > 0).then_some((section, Some(compressed::Header::Gnu)))
    }

    /// Returns the kind of header before the contents of a section, if they are compressed.
    pub(crate) fn compression(&self, section: &Section) -> Option<compressed::Header> {
        let header = if self.is_64_bit {
            compressed::Header::Elf64
        } else {
            compressed::Header::Elf32
        };
        (section.flags & SHF_COMPRESSED != 0).then_some(header)
    }

    fn find_by(&self, is_meant: impl Fn(&[u8]) -> bool) -> Option<&Section> {
        let mut sections = self.all.iter().filter(|section| section.is_in_file());
        sections.find(|section| {
            let rest = self.names.get(section.name as usize..).unwrap_or_default();
            let end = rest.iter().take(NAME_LIMIT).position(|&byte| byte == 0);
            end.is_some_and(|end| is_meant(&rest[..end]))
        })
    }
}
