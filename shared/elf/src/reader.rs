//! Reads the headers of a file, and the contents of its sections.

use crate::compressed::{self, Compressed};
use crate::error::Error;
use crate::headers::Header;
use crate::sections::{Section, Sections};
use crate::segments::Segments;
use crate::source::{Bounded, Source};

/// ELF file, with its headers and the source of all other bytes.
pub struct Elf<S> {
    file: Bounded<S>,
    header: Header,
    segments: Segments,
    sections: Sections,
}

impl<S: Source> Elf<S> {
    /// Reads all headers.
    ///
    /// # Errors
    /// The file is not a little-endian ELF file, or a header cannot be read.
    pub fn read(source: S) -> Result<Self, Error> {
        let mut elf = Elf::read_start(source)?;
        elf.sections = Sections::read(&elf.file, &elf.header)?;
        Ok(elf)
    }

    /// Reads the headers as a loader does. Leaves out section headers that cannot be read.
    ///
    /// # Errors
    /// The file is not a little-endian ELF file, or its program headers cannot be read.
    pub fn read_loaded(source: S) -> Result<Self, Error> {
        let mut elf = Elf::read_start(source)?;
        elf.sections = Sections::read(&elf.file, &elf.header).unwrap_or_default();
        Ok(elf)
    }

    fn read_start(source: S) -> Result<Self, Error> {
        let file = Bounded::new(source)?;
        let header = Header::read(&file)?;
        let segments = Segments::read_table(&file, &header)?;
        Ok(Elf {
            file,
            header,
            segments,
            sections: Sections::default(),
        })
    }

    /// Returns the source that the file is read from.
    pub fn source(&self) -> &S {
        &self.file.source
    }

    /// Returns the header at the beginning of the file.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the program headers.
    pub fn segments(&self) -> &Segments {
        &self.segments
    }

    /// Returns all sections that have a header.
    pub fn sections(&self) -> &[Section] {
        self.sections.all()
    }

    /// Returns the section with this name, if it has bytes in the file.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.find(name)
    }

    /// Returns the first section of this type (`SHT_...`). The gABI allows one symbol table of each
    /// type.
    pub fn section_of_kind(&self, kind: u32) -> Option<&Section> {
        self.sections().iter().find(|section| section.kind == kind)
    }

    /// Returns whether the file has contents for the section `name`. In the file, a section
    /// `.debug_…` may have the name `.zdebug_…`.
    pub fn has_contents(&self, name: &str) -> bool {
        self.sections.find_contents(name).is_some()
    }

    /// Reads and decompresses the contents of the section `name`. Returns no bytes if there are no
    /// contents. See [`Elf::has_contents`].
    ///
    /// Subtracts the numbers of bytes that are read and decompressed from `room`.
    ///
    /// # Errors
    /// The contents cannot be read, are not what their header claims, or take more than `room`.
    pub fn contents(&self, name: &'static str, room: &mut u64) -> Result<Vec<u8>, Error> {
        match self.sections.find_contents(name) {
            Some((section, compression)) => self.unpack(name, section, compression, room),
            None => Ok(Vec::new()),
        }
    }

    /// Reads and decompresses the contents of a section, like [`Elf::contents`]. Errors name the
    /// contents `what`.
    ///
    /// # Errors
    /// The contents cannot be read, are not what their header claims, or take more than `room`.
    pub fn section_contents(
        &self,
        what: &'static str,
        section: &Section,
        room: &mut u64,
    ) -> Result<Vec<u8>, Error> {
        let compression = self.sections.compression(section);
        self.unpack(what, section, compression, room)
    }

    fn unpack(
        &self,
        what: &'static str,
        section: &Section,
        compression: Option<compressed::Header>,
        room: &mut u64,
    ) -> Result<Vec<u8>, Error> {
        take(what, room, section.size)?;
        let bytes = self.bytes(what, section.offset, section.size)?;
        let Some(compression) = compression else {
            return Ok(bytes);
        };
        let compressed = Compressed::parse(what, &bytes, compression)?;
        take(what, room, compressed.size())?;
        self.file.charge(what, section.offset, compressed.size())?;
        compressed.decompress()
    }

    /// Returns whether the contents of a section are compressed.
    pub(crate) fn is_compressed(&self, section: &Section) -> bool {
        self.sections.compression(section).is_some()
    }

    /// Reads exactly `size` bytes at an offset in the file. Errors name the bytes `what`.
    ///
    /// # Errors
    /// The file lacks some of the bytes, or the source refuses to read them.
    pub fn bytes(&self, what: &'static str, offset: u64, size: u64) -> Result<Vec<u8>, Error> {
        self.file.bytes(what, offset, size)
    }

    /// Fills `buffer` from an offset in the file. Returns the number of bytes read, which is
    /// smaller at the end of the file; `None` if they cannot be read.
    pub(crate) fn fill(&self, what: &'static str, offset: u64, buffer: &mut [u8]) -> Option<usize> {
        let size = buffer.len() as u64;
        self.file.charge(what, offset, size).ok()?;
        self.file.fill(offset, buffer).ok()
    }

    /// Charges for bytes of `what` that the caller decompresses piece by piece.
    pub(crate) fn charge(&self, what: &'static str, size: u64) -> Result<(), Error> {
        self.file.charge(what, 0, size)
    }
}

/// Subtracts `size` bytes from `room`.
fn take(what: &'static str, room: &mut u64, size: u64) -> Result<(), Error> {
    Error::limit(what, size, *room)?;
    *room -= size;
    Ok(())
}
