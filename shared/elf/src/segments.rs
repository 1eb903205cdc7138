//! Program headers: the segments of a file, and the addresses where a loader maps them.

use std::ops::Range;

use crate::error::Error;
use crate::headers::Header;
use crate::layout::{Fields, PAGE, PF_W, PF_X, PT_LOAD, SEGMENT_SIZE, SEGMENT_SIZE_32};
use crate::source::{Bounded, Source};

/// Maximum number of program headers. Linked files have a dozen.
const SEGMENT_LIMIT: u64 = 4 << 10;

/// Program header, `Elf64_Phdr` or `Elf32_Phdr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Type, `PT_...`.
    pub kind: u32,
    /// Flags, `PF_...`.
    pub flags: u32,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Virtual address of the byte at `offset`.
    pub address: u64,
    /// Size in the file, in bytes.
    pub size: u64,
    /// Size in memory, in bytes. Bytes that the file lacks are 0.
    pub memory_size: u64,
    /// Alignment in memory, in bytes.
    pub alignment: u64,
}

impl Segment {
    /// Parses a program header of a 64-bit file.
    pub fn parse(bytes: &[u8]) -> Segment {
        Segment::new(bytes, true)
    }

    fn new(bytes: &[u8], is_64_bit: bool) -> Segment {
        let fields = Fields(bytes);
        let word = |at, at_32| fields.word(is_64_bit, at, at_32);
        Segment {
            kind: fields.u32(0),
            flags: fields.u32(if is_64_bit { 4 } else { 24 }),
            offset: word(8, 4),
            address: word(16, 8),
            size: word(32, 16),
            memory_size: word(40, 20),
            alignment: word(48, 28),
        }
    }

    /// Returns whether the segment is loaded.
    #[inline]
    pub fn is_loaded(&self) -> bool {
        self.kind == PT_LOAD
    }

    /// Returns whether the segment is loaded and executable.
    #[inline]
    pub fn is_code(&self) -> bool {
        self.is_loaded() && self.flags & PF_X != 0
    }

    /// Returns the offsets of the segment's bytes in the file.
    pub fn file_range(&self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.size)
    }

    /// Returns the pages of the file that contain the segment, and the virtual address of the first
    /// of these pages.
    fn pages(&self) -> (Range<u64>, u64) {
        let before = self.offset % PAGE;
        let start = self.offset - before;
        let size = self
            .size
            .saturating_add(before)
            .checked_next_multiple_of(PAGE);
        let end = start.saturating_add(size.unwrap_or(0));
        (start..end, self.address.wrapping_sub(before))
    }
}

/// All program headers of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segments(Vec<Segment>);

impl From<Vec<Segment>> for Segments {
    fn from(segments: Vec<Segment>) -> Segments {
        Segments(segments)
    }
}

impl Segments {
    /// Reads only the ELF header and the program headers of a file.
    ///
    /// # Errors
    /// The file cannot be read, or is not a little-endian ELF file.
    pub fn read(source: impl Source) -> Result<Segments, Error> {
        let file = Bounded::new(source)?;
        let header = Header::read(&file)?;
        Segments::read_table(&file, &header)
    }

    pub(crate) fn read_table<S: Source>(
        file: &Bounded<S>,
        header: &Header,
    ) -> Result<Segments, Error> {
        let table = header.segments;
        if table.count == 0 || table.offset == 0 {
            return Ok(Segments::default());
        }
        let what = "program headers";
        let size = if header.is_64_bit {
            SEGMENT_SIZE
        } else {
            SEGMENT_SIZE_32
        };
        table.check(what, size)?;
        let count = u64::from(table.count);
        Error::limit(what, count, SEGMENT_LIMIT)?;
        let bytes = file.bytes(what, table.offset, count * size as u64)?;
        let segments = bytes
            .chunks_exact(size)
            .map(|bytes| Segment::new(bytes, header.is_64_bit));
        Ok(Segments(segments.collect()))
    }

    /// Returns all segments, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &Segment> {
        self.0.iter()
    }

    /// Returns the loaded segments.
    pub fn loaded(&self) -> impl Iterator<Item = &Segment> {
        self.iter().filter(|segment| segment.is_loaded())
    }

    /// Returns the loaded segments with executable code.
    pub fn code(&self) -> impl Iterator<Item = &Segment> {
        self.iter().filter(|segment| segment.is_code())
    }

    /// Returns the virtual address of the code at this offset in the file.
    pub fn address(&self, offset: u64) -> Option<u64> {
        // Segments may share a page of the file, but only one of them is code.
        let mut code = self.code();
        code.find_map(|segment| {
            let into = offset.checked_sub(segment.offset)?;
            (into < segment.size).then_some(segment.address.checked_add(into))
        })?
    }

    /// Returns the virtual address at the start of a mapping of code, from the mapping's offset in
    /// the file. The offset is a multiple of the page size, so other bytes may precede the code.
    pub fn mapped_address(&self, offset: u64) -> Option<u64> {
        let mut code = self.code();
        let segment = code.find(|segment| {
            let before = segment.offset % PAGE;
            offset
                .checked_sub(segment.offset - before)
                .is_some_and(|into| into < segment.size.saturating_add(before))
        })?;
        let into = offset.wrapping_sub(segment.offset).cast_signed();
        segment.address.checked_add_signed(into)
    }

    /// Returns the offset in the file of the `size` bytes at a virtual address, if the file has all
    /// of these bytes.
    #[inline]
    pub fn offset(&self, address: u64, size: u64) -> Option<u64> {
        self.loaded().find_map(|segment| {
            let into = address.checked_sub(segment.address)?;
            let within = into.checked_add(size)? <= segment.size;
            within.then(|| segment.offset.checked_add(into))?
        })
    }

    /// Returns the offset in the file of the code at these virtual addresses, if the pages of one
    /// segment have all of it.
    pub fn code_offset(&self, addresses: Range<u64>) -> Option<u64> {
        let mut code = self.code().filter(|_| addresses.start < addresses.end);
        code.find_map(|segment| {
            let (file, address) = segment.pages();
            let into = addresses.start.checked_sub(address)?;
            let end = addresses.end.checked_sub(address)?;
            (end <= file.end - file.start).then(|| file.start.checked_add(into))?
        })
    }

    /// Returns whether a virtual address is inside a writable segment.
    pub fn has_data(&self, address: u64) -> bool {
        let mut data = self.loaded().filter(|segment| segment.flags & PF_W != 0);
        data.any(|segment| {
            let into = address.checked_sub(segment.address);
            into.is_some_and(|into| into < segment.memory_size)
        })
    }

    /// Returns the possible load biases of the file, if the mapping of `offset` begins at the
    /// address `start`. A bias is the difference between addresses in memory and virtual addresses.
    /// Several biases are possible, because segments may share a page of the file.
    pub fn biases(&self, offset: u64, start: u64) -> impl Iterator<Item = u64> {
        self.loaded().filter_map(move |segment| {
            let (file, address) = segment.pages();
            let into = offset
                .checked_sub(file.start)
                .filter(|_| offset < file.end)?;
            Some(start.wrapping_sub(address.wrapping_add(into)))
        })
    }
}
