//! Finding the parts of an ELF image (System V ABI, chapters 4 and 5), with
//! every offset and size checked against the file.

use std::io::{self, Read};
use std::ops::Range;

use packed::Header;
use process::ELF_MACHINE;

use crate::{Error, Segment, Source};

/// Bytes of one section that are accepted. The largest `.eh_frame` of a
/// browser built with all debugging aids has about 60 MiB.
const SECTION_LIMIT: u64 = 256 << 20;
/// Bytes of the ELF file in `.gnu_debugdata` that are accepted.
const MINI_LIMIT: u64 = 64 << 20;
/// Bytes of section names that are accepted; links have a few hundred.
const NAMES_LIMIT: u64 = 1 << 20;
/// Executable segments that are accepted; links have one or two.
const SEGMENT_LIMIT: u64 = 32;

const HEADER_SIZE: u64 = 64;
const PROGRAM_HEADER_SIZE: u64 = 56;
const SECTION_HEADER_SIZE: u64 = 64;

const PT_LOAD: u32 = 1;
const PT_GNU_EH_FRAME: u32 = 0x6474_e550;
const PF_X: u32 = 1;
const SHT_NOBITS: u32 = 8;
const SHF_COMPRESSED: u64 = 1 << 11;

/// The headers of an ELF image.
pub(crate) struct Elf<'a, S: Source + ?Sized> {
    source: &'a S,
    size: u64,
    /// Address of the first instruction; 0 in most libraries.
    pub(crate) entry: u64,
    programs: Vec<ProgramHeader>,
    sections: Vec<Section>,
    names: Vec<u8>,
}

/// `Elf64_Phdr`.
struct ProgramHeader {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    file_size: u64,
}

/// `Elf64_Shdr`.
pub(crate) struct Section {
    name: u32,
    pub(crate) kind: u32,
    pub(crate) flags: u64,
    pub(crate) address: u64,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    /// Index of the section that this one refers to.
    pub(crate) link: u32,
}

impl Section {
    /// Whether it has bytes in the file.
    pub(crate) fn in_file(&self) -> bool {
        self.kind != SHT_NOBITS
    }

    /// Its addresses, if it has any.
    pub(crate) fn range(&self) -> Option<Range<u64>> {
        Some(self.address..self.address.checked_add(self.size)?)
    }
}

impl<'a, S: Source + ?Sized> Elf<'a, S> {
    /// Reads the headers. An image without section headers is whole: the
    /// loader does not need them.
    pub(crate) fn new(source: &'a S) -> Result<Self, Error> {
        let size = source.size().map_err(|error| Error::Read {
            what: "size of the file",
            offset: 0,
            size: 0,
            source: error,
        })?;
        let mut elf = Elf {
            source,
            size,
            entry: 0,
            programs: Vec::new(),
            sections: Vec::new(),
            names: Vec::new(),
        };
        if size < HEADER_SIZE {
            return Err(Error::Unsupported);
        }
        let bytes = elf.read("ELF header", 0, HEADER_SIZE)?;
        let header = Fields(&bytes);
        // 64 bits, little endian, version 1.
        if !bytes.starts_with(b"\x7fELF\x02\x01\x01") || header.u16(18) != ELF_MACHINE {
            return Err(Error::Unsupported);
        }
        elf.entry = header.u64(24);
        elf.programs = elf
            .read_table(
                "program headers",
                header.u64(32),
                (header.u16(54), PROGRAM_HEADER_SIZE),
                header.u16(56),
            )?
            .chunks_exact(PROGRAM_HEADER_SIZE as usize)
            .map(|bytes| ProgramHeader::new(&Fields(bytes)))
            .collect();
        // Section headers are no part of what is loaded. If they are not
        // there, or cut off, then the program headers have to do.
        if let Ok(bytes) = elf.read_table(
            "section headers",
            header.u64(40),
            (header.u16(58), SECTION_HEADER_SIZE),
            header.u16(60),
        ) {
            elf.sections = bytes
                .chunks_exact(SECTION_HEADER_SIZE as usize)
                .map(|bytes| Section::new(&Fields(bytes)))
                .collect();
            elf.names = elf
                .sections
                .get(usize::from(header.u16(62)))
                .filter(|names| names.size <= NAMES_LIMIT)
                .and_then(|names| elf.read("section names", names.offset, names.size).ok())
                .unwrap_or_default();
        }
        Ok(elf)
    }

    /// The code that is loaded from the file.
    pub(crate) fn segments(&self) -> Result<Vec<Segment>, Error> {
        let segments: Vec<Segment> = self
            .programs
            .iter()
            .filter(|program| program.kind == PT_LOAD && program.flags & PF_X != 0)
            .filter(|program| program.address.checked_add(program.file_size).is_some())
            .map(|program| Segment {
                offset: program.offset,
                address: program.address,
                size: program.file_size,
            })
            .collect();
        Error::limit("executable segments", segments.len() as u64, SEGMENT_LIMIT)?;
        Ok(segments)
    }

    /// Where in the file the `size` bytes at a virtual address are, if it has all
    /// of them.
    pub(crate) fn offset(&self, address: u64, size: u64) -> Option<u64> {
        let loaded = |program: &&ProgramHeader| program.kind == PT_LOAD;
        self.programs.iter().filter(loaded).find_map(|program| {
            let into = address.checked_sub(program.address)?;
            let within = into.checked_add(size)? <= program.file_size;
            within.then(|| program.offset.checked_add(into))?
        })
    }

    /// All sections that have a header.
    pub(crate) fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// The section of that name that has bytes in the file.
    pub(crate) fn section(&self, name: &str) -> Option<&Section> {
        self.sections
            .iter()
            .find(|section| section.in_file() && self.has_name(section, name))
    }

    fn has_name(&self, section: &Section, name: &str) -> bool {
        self.names
            .get(section.name as usize..)
            .and_then(|bytes| bytes.strip_prefix(name.as_bytes()))
            .is_some_and(|rest| rest.first() == Some(&0))
    }

    /// The bytes of a section, decompressed.
    pub(crate) fn contents(&self, what: &'static str, section: &Section) -> Result<Vec<u8>, Error> {
        Error::limit(what, section.size, SECTION_LIMIT)?;
        let bytes = self.read(what, section.offset, section.size)?;
        if section.flags & SHF_COMPRESSED == 0 {
            return Ok(bytes);
        }
        unpack(what, &bytes, Header::Elf64)
    }

    /// `.debug_frame`, which may be packed as GNU tools once did it, or be in the ELF file that
    /// `.gnu_debugdata` holds; `None` if there is none.
    pub(crate) fn debug_frame(&self) -> Result<Option<Vec<u8>>, Error> {
        if let Some(section) = self.section(".debug_frame") {
            return self.contents(".debug_frame", section).map(Some);
        }
        let what = ".zdebug_frame";
        let Some(section) = self.section(what) else {
            return Ok(None);
        };
        let bytes = self.contents(what, section)?;
        unpack(what, &bytes, Header::Gnu).map(Some)
    }

    /// The ELF file that `.gnu_debugdata` holds; `None` if there is none.
    pub(crate) fn mini_debug_information(&self) -> Result<Option<Vec<u8>>, Error> {
        let what = ".gnu_debugdata";
        let Some(section) = self.section(what) else {
            return Ok(None);
        };
        let packed = self.contents(what, section)?;
        let mut bytes = Vec::new();
        let mut reader = packed::read_xz(packed).take(MINI_LIMIT + 1);
        if reader.read_to_end(&mut bytes).is_err() {
            let reason = "its data are not xz data";
            return Err(Error::Compressed { what, reason });
        }
        Error::limit(what, bytes.len() as u64, MINI_LIMIT)?;
        Ok(Some(bytes))
    }

    /// `.eh_frame` by way of the program header for `.eh_frame_hdr`: its
    /// address, and the bytes from there to the end of its segment. Linux
    /// Standard Base Core 5.0, section 10.6.2.
    pub(crate) fn eh_frame_by_program_header(&self) -> Result<Option<(u64, Vec<u8>)>, Error> {
        let Some(header) = self.programs.iter().find(|p| p.kind == PT_GNU_EH_FRAME) else {
            return Ok(None);
        };
        // Version and encodings take 4 bytes, an encoded pointer 10 at most.
        let bytes = self.read(".eh_frame_hdr", header.offset, header.file_size.min(32))?;
        let bases = gimli::BaseAddresses::default().set_eh_frame_hdr(header.address);
        let Some(address) = gimli::EhFrameHdr::new(&bytes, gimli::LittleEndian)
            .parse(&bases, 8)
            .and_then(|header| header.eh_frame_ptr().direct())
            .ok()
        else {
            return Ok(None);
        };
        for program in self.programs.iter().filter(|p| p.kind == PT_LOAD) {
            let into = address.wrapping_sub(program.address);
            if into < program.file_size {
                let what = ".eh_frame";
                let size = program.file_size - into;
                Error::limit(what, size, SECTION_LIMIT)?;
                let offset = program.offset.saturating_add(into);
                return Ok(Some((address, self.read(what, offset, size)?)));
            }
        }
        Ok(None)
    }

    /// Reads a table of headers of the only size that there is. None at all
    /// are no error.
    fn read_table(
        &self,
        what: &'static str,
        offset: u64,
        (found, expected): (u16, u64),
        count: u16,
    ) -> Result<Vec<u8>, Error> {
        if count == 0 || offset == 0 {
            return Ok(Vec::new());
        }
        if u64::from(found) != expected {
            return Err(Error::Unsupported);
        }
        self.read(what, offset, u64::from(count) * expected)
    }

    /// All of `size` bytes at `offset`.
    pub(crate) fn read(
        &self,
        what: &'static str,
        offset: u64,
        size: u64,
    ) -> Result<Vec<u8>, Error> {
        let out_of_bounds = || Error::OutOfBounds { what, offset, size };
        // Checked before memory is set aside for what a header claims.
        if offset.checked_add(size).is_none_or(|end| end > self.size) {
            return Err(out_of_bounds());
        }
        let length = usize::try_from(size).map_err(|_| out_of_bounds())?;
        let mut bytes = vec![0; length];
        let mut done = 0;
        while done < length {
            match self
                .source
                .read_at(offset + done as u64, &mut bytes[done..])
            {
                Ok(0) => return Err(out_of_bounds()),
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(Error::Read {
                        what,
                        offset,
                        size,
                        source,
                    });
                }
            }
        }
        Ok(bytes)
    }
}

impl ProgramHeader {
    fn new(fields: &Fields<'_>) -> ProgramHeader {
        ProgramHeader {
            kind: fields.u32(0),
            flags: fields.u32(4),
            offset: fields.u64(8),
            address: fields.u64(16),
            file_size: fields.u64(32),
        }
    }
}

impl Section {
    fn new(fields: &Fields<'_>) -> Section {
        Section {
            name: fields.u32(0),
            kind: fields.u32(4),
            flags: fields.u64(8),
            address: fields.u64(16),
            offset: fields.u64(24),
            size: fields.u64(32),
            link: fields.u32(40),
        }
    }
}

fn unpack(what: &'static str, bytes: &[u8], header: Header) -> Result<Vec<u8>, Error> {
    let compressed = |reason| Error::Compressed { what, reason };
    let section = packed::Section::parse(bytes, header).map_err(compressed)?;
    if section.is_implausible() {
        let reason = "its header gives a size to which no such section unpacks";
        return Err(compressed(reason));
    }
    Error::limit(what, section.size(), SECTION_LIMIT)?;
    section.unpack().map_err(compressed)
}

/// Little-endian numbers at byte offsets; 0 past the end.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl Fields<'_> {
    fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        self.0
            .get(at..)
            .and_then(|bytes| bytes.first_chunk())
            .copied()
            .unwrap_or([0; N])
    }

    pub(crate) fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.bytes(at))
    }

    pub(crate) fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes(at))
    }

    pub(crate) fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes(at))
    }
}
