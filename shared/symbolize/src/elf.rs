//! Just enough of ELF to find symbols, build ID and debug link.
//!
//! The files belong to the profiled programs: every offset and size in them
//! may be a lie, and they may shrink while they are read. So nothing is mapped
//! (a file that shrinks under a mapping raises SIGBUS) and everything is read
//! with a bound. Layouts are those of elf(5) and the System V gABI.

mod contents;
mod links;

pub(crate) use links::find_build_id;

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::ops::Range;
use std::os::unix::fs::FileExt;

use crate::budget::Allowance;

const MOST_SEGMENTS: u64 = 4 << 10;
const MOST_SECTIONS: u64 = 64 << 10;
const MOST_SYMBOLS: u64 = 32 << 20;
/// Longest name read, mangled.
const LONGEST_NAME: usize = 4 << 10;
/// Symbols read at a time.
const BATCH: u64 = 4 << 10;

/// Offset at which unpacked sections begin. No file is as long.
const UNPACKED_AT: u64 = 1 << 63;

/// `p_type` of a segment that is mapped.
pub(crate) const PT_LOAD: u32 = 1;
/// `p_flags`: executable.
pub(crate) const PF_X: u32 = 1;
/// `p_flags`: writable.
pub(crate) const PF_W: u32 = 2;

/// `sh_type` of a full symbol table.
pub(crate) const SHT_SYMTAB: u32 = 2;
/// `sh_type` of the dynamic linker's symbol table.
pub(crate) const SHT_DYNSYM: u32 = 11;

struct Segment {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    size: u64,
    /// In memory, where what the file does not have is 0.
    memory: u64,
}

struct Section {
    name: u32,
    kind: u32,
    flags: u64,
    offset: u64,
    size: u64,
    link: u32,
}

/// Segments of a loaded file: they map offsets to addresses.
pub(crate) struct CodePlaces(Vec<Segment>);

impl CodePlaces {
    /// The addresses at which the file may have been loaded if an offset in it is mapped at an
    /// address: how much is added to the virtual addresses. Segments may share a page of the
    /// file.
    pub(crate) fn biases(&self, offset: u64, start: u64) -> impl Iterator<Item = u64> {
        self.0.iter().filter_map(move |segment| {
            let (file, address) = segment.pages();
            let into = offset
                .checked_sub(file.start)
                .filter(|_| offset < file.end)?;
            Some(start.wrapping_sub(address.wrapping_add(into)))
        })
    }

    /// The offset of the code that is at all of these virtual addresses, if the file has it.
    pub(crate) fn code_offset(&self, addresses: Range<u64>) -> Option<u64> {
        let code = self.0.iter().filter(|segment| segment.flags & PF_X != 0);
        code.filter(|_| addresses.start < addresses.end)
            .find_map(|segment| {
                let (file, address) = segment.pages();
                let into = addresses.start.checked_sub(address)?;
                let end = addresses.end.checked_sub(address)?;
                (end <= file.end - file.start).then(|| file.start.checked_add(into))?
            })
    }
}

impl Segment {
    /// The pages of the file that it takes, and the virtual address of the first.
    fn pages(&self) -> (Range<u64>, u64) {
        const PAGE: u64 = 4096;
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

/// A symbol table entry, its name still unread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawSymbol {
    /// Where its name starts in the file.
    pub(crate) name: u64,
    /// Type and binding, `st_info`.
    pub(crate) info: u8,
    /// Section that defines it; 0 if none does.
    pub(crate) section: u16,
    /// Virtual address.
    pub(crate) address: u64,
    /// Size in bytes; 0 if it is not known.
    pub(crate) size: u64,
}

/// An ELF file's headers.
pub(crate) struct Elf<'f> {
    file: &'f File,
    /// Allowance that pays for reading the file.
    pub(crate) allowance: &'f Allowance,
    wide: bool,
    segments: Vec<Segment>,
    sections: Vec<Section>,
    section_names: usize,
    /// Unpacked sections, which are at [`UNPACKED_AT`] as if the file had them there.
    unpacked: Vec<u8>,
}

/// Fixed-size fields of a header in memory.
struct Fields<'b>(&'b [u8]);

impl Fields<'_> {
    fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        let bytes = self
            .0
            .get(at..at + N)
            .and_then(|bytes| bytes.try_into().ok());
        bytes.unwrap_or([0; N])
    }

    fn half(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.bytes(at))
    }

    fn word(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes(at))
    }

    /// A field of 8 bytes in 64-bit files and of 4 in others.
    fn address(&self, wide: bool, at: (usize, usize)) -> u64 {
        match wide {
            true => u64::from_le_bytes(self.bytes(at.0)),
            false => self.word(at.1).into(),
        }
    }
}

fn invalid(what: &'static str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

impl<'f> Elf<'f> {
    /// Reads the headers.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a little-endian ELF file.
    pub(crate) fn read(file: &'f File, allowance: &'f Allowance) -> Result<Self> {
        let (mut elf, header) = Self::read_loaded(file, allowance)?;
        let (wide, counts) = if elf.wide { (true, 56) } else { (false, 44) };
        let header = Fields(&header);
        // A file without section headers has no symbols, but is no less valid.
        let sections = header.address(wide, (40, 32));
        if sections != 0 {
            elf.read_sections(sections, header.half(counts + 4).into())?;
            elf.unpack_symbols()?;
        }
        Ok(elf)
    }

    /// Reads what says how the file is loaded, and returns the first header, too.
    fn read_loaded(file: &'f File, allowance: &'f Allowance) -> Result<(Self, [u8; 64])> {
        allowance.take(0)?;
        let mut header = [0; 64];
        file.read_exact_at(&mut header[..52], 0)?;
        if header[..4] != *b"\x7fELF" || header[5] != 1 {
            return Err(invalid("not a little-endian ELF file"));
        }
        let wide = header[4] == 2;
        if wide {
            file.read_exact_at(&mut header, 0)?;
        }
        let fields = Fields(&header);
        let counts = if wide { 56 } else { 44 };
        let mut elf = Self {
            file,
            allowance,
            wide,
            segments: Vec::new(),
            sections: Vec::new(),
            section_names: fields.half(counts + 6).into(),
            unpacked: Vec::new(),
        };
        let segments = u64::from(fields.half(counts)).min(MOST_SEGMENTS);
        elf.read_segments(fields.address(wide, (32, 28)), segments)?;
        Ok((elf, header))
    }

    /// Reads which of its code a file has mapped where. See [`CodePlaces`].
    ///
    /// # Errors
    /// If the file cannot be read, or is not a little-endian ELF file.
    pub(crate) fn code_places(file: &File) -> Result<CodePlaces> {
        let allowance = Allowance::alone();
        let (elf, _) = Elf::read_loaded(file, &allowance)?;
        let loaded = elf.segments.into_iter();
        Ok(CodePlaces(
            loaded.filter(|segment| segment.kind == PT_LOAD).collect(),
        ))
    }

    /// Reads `size` bytes, of which the caller has made sure that there is memory for them.
    fn bytes(&self, offset: u64, size: u64) -> Result<Vec<u8>> {
        self.allowance.take(size)?;
        let mut bytes = vec![0; size as usize];
        match offset.checked_sub(UNPACKED_AT) {
            Some(at) => self.unpacked_from(at).read_exact(&mut bytes)?,
            None => self.file.read_exact_at(&mut bytes, offset)?,
        }
        Ok(bytes)
    }

    fn unpacked_from(&self, at: u64) -> &[u8] {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        self.unpacked.get(at..).unwrap_or_default()
    }

    fn read_segments(&mut self, offset: u64, count: u64) -> Result<()> {
        let wide = self.wide;
        let size = if wide { 56 } else { 32 };
        for fields in self.bytes(offset, count * size)?.chunks(size as usize) {
            let fields = Fields(fields);
            self.segments.push(Segment {
                kind: fields.word(0),
                flags: fields.word(if wide { 4 } else { 24 }),
                offset: fields.address(wide, (8, 4)),
                address: fields.address(wide, (16, 8)),
                size: fields.address(wide, (32, 16)),
                memory: fields.address(wide, (40, 20)),
            });
        }
        Ok(())
    }

    fn read_sections(&mut self, offset: u64, count: u64) -> Result<()> {
        let wide = self.wide;
        let size = if wide { 64 } else { 40 };
        let parse = |fields: &[u8]| {
            let fields = Fields(fields);
            Section {
                name: fields.word(0),
                kind: fields.word(4),
                flags: fields.address(wide, (8, 8)),
                offset: fields.address(wide, (24, 16)),
                size: fields.address(wide, (32, 20)),
                link: fields.word(if wide { 40 } else { 24 }),
            }
        };
        // The first section holds the numbers that the header has no room for.
        let first = parse(&self.bytes(offset, size)?);
        let count = if count == 0 { first.size } else { count };
        if self.section_names == 0xffff {
            self.section_names = first.link as usize;
        }
        if count > MOST_SECTIONS {
            return Err(invalid("too many sections"));
        }
        let bytes = self.bytes(offset, count * size)?;
        self.sections = bytes.chunks(size as usize).map(parse).collect();
        Ok(())
    }

    /// The virtual address of the code at an offset in the file.
    pub(crate) fn address(&self, offset: u64) -> Option<u64> {
        let loaded = |segment: &&Segment| {
            segment.kind == PT_LOAD
                && offset
                    .checked_sub(segment.offset)
                    .is_some_and(|at| at < segment.size)
        };
        let mut segments = self.segments.iter();
        // Segments may share a page of the file; only one of them is code.
        let segment = segments.find(|segment| loaded(segment) && segment.flags & PF_X != 0)?;
        segment.address.checked_add(offset - segment.offset)
    }

    /// The virtual address of where a mapping of code begins, which is at an offset in the
    /// file: a multiple of the size of pages, so other bytes may come before the code.
    pub(crate) fn mapped_address(&self, offset: u64) -> Option<u64> {
        const PAGE: u64 = 4096;
        let mut segments = self.segments.iter().filter(|segment| {
            let before = segment.offset % PAGE;
            segment.kind == PT_LOAD
                && segment.flags & PF_X != 0
                && offset
                    .checked_sub(segment.offset - before)
                    .is_some_and(|at| at < segment.size.saturating_add(before))
        });
        let segment = segments.next()?;
        segment
            .address
            .checked_add_signed(offset.wrapping_sub(segment.offset).cast_signed())
    }

    /// Whether a virtual address is in what programs may write to.
    pub(crate) fn has_data(&self, address: u64) -> bool {
        self.segments.iter().any(|segment| {
            segment.kind == PT_LOAD
                && segment.flags & PF_W != 0
                && address
                    .checked_sub(segment.address)
                    .is_some_and(|at| at < segment.memory)
        })
    }

    /// Whether there is a symbol table of this type.
    pub(crate) fn has(&self, kind: u32) -> bool {
        self.sections.iter().any(|section| section.kind == kind)
    }

    /// Calls `visit` with every symbol of the tables of a type.
    ///
    /// # Errors
    /// If a table cannot be read, or `visit` fails.
    pub(crate) fn symbols(
        &self,
        kind: u32,
        mut visit: impl FnMut(RawSymbol) -> Result<()>,
    ) -> Result<()> {
        // One of each type is all that the gABI allows.
        let Some(table) = self.sections.iter().find(|section| section.kind == kind) else {
            return Ok(());
        };
        let names = self.sections.get(table.link as usize);
        let names = names.ok_or_else(|| invalid("symbols without names"))?;
        let size = if self.wide { 24 } else { 16 };
        let count = table.size / size;
        if count > MOST_SYMBOLS {
            return Err(invalid("too many symbols"));
        }
        for first in (0..count).step_by(BATCH as usize) {
            let here = BATCH.min(count - first);
            let offset = table.offset.checked_add(first * size);
            let offset = offset.ok_or_else(|| invalid("symbols beyond the end of the file"))?;
            for fields in self.bytes(offset, here * size)?.chunks(size as usize) {
                visit(self.symbol(&Fields(fields), names.offset))?;
            }
        }
        Ok(())
    }

    fn symbol(&self, fields: &Fields<'_>, names: u64) -> RawSymbol {
        let name = names.saturating_add(fields.word(0).into());
        let info = if self.wide { 4 } else { 12 };
        RawSymbol {
            name,
            info: fields.bytes::<1>(info)[0],
            section: fields.half(info + 2),
            address: fields.address(self.wide, (8, 4)),
            size: fields.address(self.wide, (16, 8)),
        }
    }

    /// Reads the text that starts at an offset in the file and ends with a
    /// zero byte; nothing if it is empty, too long or not there.
    pub(crate) fn name(&self, offset: u64) -> Option<String> {
        let mut bytes = Vec::new();
        let mut piece = [0; 256];
        while bytes.len() < LONGEST_NAME {
            let at = offset.checked_add(bytes.len() as u64)?;
            self.allowance.take(piece.len() as u64).ok()?;
            let read = match at.checked_sub(UNPACKED_AT) {
                Some(at) => self.unpacked_from(at).read(&mut piece).ok()?,
                None => self.file.read_at(&mut piece, at).ok()?,
            };
            let piece = piece[..read].split(|&byte| byte == 0).next()?;
            bytes.extend_from_slice(piece);
            if piece.len() < read {
                let name = String::from_utf8_lossy(&bytes).into_owned();
                return (!name.is_empty()).then_some(name);
            }
            if read == 0 {
                break;
            }
        }
        None
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::io::Write;

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    #[test]
    fn other_files_are_refused() {
        let head = std::fs::read("/proc/self/exe").unwrap();
        for (at, value) in [(0, 0), (5, 2)] {
            let mut other = head.clone();
            other[at] = value;
            assert!(Elf::read(&file(&other), &Allowance::alone()).is_err());
        }
    }

    #[test]
    fn sections_beyond_what_the_header_can_count_are_bounded() {
        let sections = |count: u64| {
            let mut head = [0; 128];
            head[..6].copy_from_slice(b"\x7fELF\x02\x01");
            // e_shoff, and sh_size of the first section.
            head[40] = 64;
            head[64 + 32..][..8].copy_from_slice(&count.to_le_bytes());
            let file = file(&head);
            file.set_len(64 + 64 * count).unwrap();
            let allowance = Allowance::alone();
            Elf::read(&file, &allowance).map(|elf| elf.sections.len() as u64)
        };
        assert_eq!(sections(MOST_SECTIONS).unwrap(), MOST_SECTIONS);
        assert!(sections(MOST_SECTIONS + 1).is_err());
        assert!(sections(MOST_SECTIONS + 2).is_err());
    }

    /// An ELF file of 64 bits with these headers.
    fn with<'f>(file: &'f File, allowance: &'f Allowance, sections: Vec<Section>) -> Elf<'f> {
        Elf {
            file,
            allowance,
            wide: true,
            segments: Vec::new(),
            sections,
            section_names: 0,
            unpacked: Vec::new(),
        }
    }

    fn section(kind: u32, offset: u64, size: u64, link: u32) -> Section {
        Section {
            name: 0,
            kind,
            flags: 0,
            offset,
            size,
            link,
        }
    }

    #[test]
    fn symbols_are_bounded() {
        let file = file(b"");
        let refused = |count: u64| {
            let table = section(SHT_SYMTAB, 0, 24 * count, 1);
            let allowance = Allowance::alone();
            let elf = with(&file, &allowance, vec![table, section(3, 0, 0, 0)]);
            elf.symbols(SHT_SYMTAB, |_| Ok(())).unwrap_err().kind()
        };
        // The file has none of them.
        assert_eq!(refused(MOST_SYMBOLS), ErrorKind::UnexpectedEof);
        assert_eq!(refused(MOST_SYMBOLS + 1), ErrorKind::InvalidData);
        assert_eq!(refused(MOST_SYMBOLS + 2), ErrorKind::InvalidData);
    }

    #[test]
    fn names_are_bounded() {
        let named = |length: usize| {
            let file = file(&[vec![b'a'; length], vec![0]].concat());
            let name = with(&file, &Allowance::alone(), Vec::new()).name(0);
            name.map(|name| name.len())
        };
        assert_eq!(named(0), None);
        assert_eq!(named(LONGEST_NAME - 1), Some(LONGEST_NAME - 1));
        assert_eq!(named(LONGEST_NAME), None);
        assert_eq!(named(LONGEST_NAME + 1), None);
    }
}
