//! Copies the image of an ELF file from the memory of a process, for a mapped file that root cannot
//! open. Such files are in a FUSE file system without `allow_other`, or on an NFS server with
//! root_squash.
//!
//! The copy is a file with the segments that are not writable. Each byte is at its offset in the
//! original file. Of a large file, only the parts with names and unwind tables are copied. Memory
//! has no section headers, so this module makes some from the dynamic section. Symbols are found by
//! these headers. The process chooses all bytes, so everything has a bound.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use ::process::{ARCHITECTURE, ELF_MACHINE};
use elf::layout::{
    DT_GNU_HASH, DT_HASH, DT_STRSZ, DT_STRTAB, DT_SYMTAB, HEADER_SIZE, PF_W, PF_X, PT_DYNAMIC,
    PT_GNU_EH_FRAME, PT_NOTE, SECTION_SIZE, SEGMENT_SIZE, SHF_ALLOC, SHF_EXECINSTR, SHT_DYNSYM,
    SHT_GNU_HASH, SHT_PROGBITS, SHT_STRTAB, SYMBOL_SIZE,
};
use elf::{Fields, Header, Section, Segment, Segments};
use rustix::fs::{MemfdFlags, memfd_create};

/// Maximum size of all images, in bytes.
const MAX_BYTES: u64 = 256 << 20;
/// Maximum time for reading all images. A FUSE server may take long to provide each page.
const MAX_TIME: Duration = Duration::from_millis(500);
/// Minimum remaining time at which a new image is begun.
const LEAST_TIME: Duration = Duration::from_millis(1);
/// Maximum number of program headers. Linked files have a dozen.
const MAX_SEGMENTS: usize = 64;
/// Maximum size of the dynamic section, in bytes. Linked files have half a KiB.
const MAX_DYNAMIC: u64 = 16 << 10;
/// Maximum number of buckets of a hash table.
const MAX_BUCKETS: u32 = 1 << 20;
/// Maximum number of symbols in the last chain of a hash table.
const MAX_IN_CHAIN: u32 = 1 << 16;
/// Maximum size of a segment, or of all code, that is copied as a whole, in bytes. Of larger data
/// only the tables are copied.
const MAX_WHOLE: u64 = 4 << 20;
/// Maximum size of a note, in bytes.
const MAX_NOTE: u64 = 64 << 10;
/// Maximum offset in a file, in bytes.
const MAX_OFFSET: u64 = 1 << 32;
/// Number of bytes that are read at a time.
const PIECE: u64 = 64 << 10;

/// Bytes and time that remain for reading images, over a whole run.
pub(crate) struct Allowance {
    bytes: u64,
    time: Duration,
    /// Bytes and time that images took so far, by process ID.
    taken: HashMap<u32, (u64, Duration)>,
}

impl Default for Allowance {
    fn default() -> Allowance {
        Allowance {
            bytes: MAX_BYTES,
            time: MAX_TIME,
            taken: HashMap::new(),
        }
    }
}

impl Allowance {
    /// Calls `read` with at most half of the bytes and time that remain for process `pid`. The
    /// images of a process therefore take at most as much as they leave to all other processes.
    ///
    /// # Errors
    /// The error of `read`, or `QuotaExceeded` if too little remains.
    pub(crate) fn spend<T>(
        &mut self,
        pid: u32,
        read: impl FnOnce(&mut Left) -> Result<T>,
    ) -> Result<T> {
        let taken = self.taken.entry(pid).or_default();
        let bytes = self.bytes.saturating_sub(taken.0) / 2;
        let time = self.time.saturating_sub(taken.1) / 2;
        if bytes < PIECE || time < LEAST_TIME {
            return Err(too_much());
        }
        let begun = Instant::now();
        let mut left = Left {
            bytes,
            until: begun + time,
        };
        let outcome = read(&mut left);
        let (bytes, time) = (bytes - left.bytes, begun.elapsed());
        *taken = (taken.0 + bytes, taken.1 + time);
        self.bytes -= bytes;
        self.time = self.time.saturating_sub(time);
        outcome
    }
}

/// Bytes and time that remain for one image.
pub(crate) struct Left {
    bytes: u64,
    until: Instant,
}

/// Mapping of code, and the place of the first byte of its file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Address of the file's header.
    pub(crate) header: u64,
    /// First address of the code.
    pub(crate) code: u64,
    /// Offset in the file at the first address of the code, in bytes.
    pub(crate) offset: u64,
}

/// Copies the image at a place. `read` returns up to the given number of bytes of memory at an
/// address.
///
/// # Errors
/// The place has no image for this architecture, or the image has no code there. Or the image
/// cannot be read completely within the remaining bytes and time.
pub(crate) fn copy(
    place: Place,
    left: &mut Left,
    read: impl FnMut(u64, usize) -> Vec<u8>,
) -> Result<File> {
    let mut memory = Memory { read, left };
    let header = memory.bytes(place.header, HEADER_SIZE as u64)?;
    let table = Header::parse(&header)
        .filter(|parsed| parsed.is_for(ELF_MACHINE))
        .map(|parsed| parsed.segments)
        .filter(|table| usize::from(table.entry_size) == SEGMENT_SIZE);
    let table = table.filter(|table| usize::from(table.count) <= MAX_SEGMENTS);
    let table = table.ok_or_else(|| invalid(format!("not an ELF file for {ARCHITECTURE}")))?;
    let programs = place.header.wrapping_add(table.offset);
    let size = usize::from(table.count) * SEGMENT_SIZE;
    let programs = memory.bytes(programs, size as u64)?;
    let programs = programs.chunks_exact(SEGMENT_SIZE);
    let programs: Vec<Segment> = programs.map(Segment::parse).collect();
    let image = Image::new(&programs, place)?;

    let file = File::from(memfd_create("image", MemfdFlags::CLOEXEC)?);
    let mut read = |program: &Segment, most: u64| {
        let start = program.address.wrapping_add(image.bias);
        memory.bytes(start, program.size.min(most))
    };
    let find = |kind| programs.iter().find(|program| program.kind == kind);
    let dynamic = find(PT_DYNAMIC).map(|dynamic| read(dynamic, MAX_DYNAMIC));
    let dynamic = Dynamic::new(&dynamic.transpose()?.unwrap_or_default());
    let frames = find(PT_GNU_EH_FRAME).map(|header| frames(header, &read(header, 8)?));
    let frames = frames.transpose()?;
    let (code, data): (Vec<&Segment>, Vec<&Segment>) =
        image.fixed().partition(|segment| segment.flags & PF_X != 0);
    for segment in data {
        for part in image.parts(segment, &programs, &dynamic, frames) {
            memory.copy(segment, part, image.bias, &file)?;
        }
    }
    let size = code.iter().map(|segment| segment.size).sum::<u64>();
    let code = if size <= MAX_WHOLE { code } else { Vec::new() };
    for segment in &code {
        memory.copy(segment, segment.file_range(), image.bias, &file)?;
    }
    let symbols = image.symbols(&dynamic, &file).unwrap_or_default();
    write_sections(header, &symbols, &code, &file)?;
    Ok(file)
}

/// Returns the lower of the first addresses of `.eh_frame` and its header `.eh_frame_hdr`. `bytes`
/// are the first bytes of that header (Linux Standard Base Core 5.0, section 10.6.2). Returns 0 if
/// the address has an encoding that linkers do not use.
fn frames(header: &Segment, bytes: &[u8]) -> Result<u64> {
    /// `DW_EH_PE_pcrel | DW_EH_PE_sdata4`, a signed word that is relative to its own address.
    const RELATIVE: u8 = 0x1b;
    if bytes.get(1) != Some(&RELATIVE) {
        return Ok(0);
    }
    let from = header.address.wrapping_add(4);
    let frames = from.wrapping_add_signed(Fields(bytes).u32(4).cast_signed().into());
    Ok(frames.min(header.address))
}

/// Memory that is read within bounds.
struct Memory<'l, Read> {
    read: Read,
    left: &'l mut Left,
}

impl<Read: FnMut(u64, usize) -> Vec<u8>> Memory<'_, Read> {
    /// Reads exactly `size` bytes.
    fn bytes(&mut self, start: u64, size: u64) -> Result<Vec<u8>> {
        let left = self.left.bytes.checked_sub(size);
        self.left.bytes = left.ok_or_else(too_much)?;
        if Instant::now() > self.left.until {
            return Err(too_much());
        }
        let bytes = (self.read)(start, size as usize);
        if bytes.len() as u64 == size {
            Ok(bytes)
        } else {
            Err(Error::new(ErrorKind::UnexpectedEof, "not all is mapped"))
        }
    }

    /// Copies a part of a segment. `part` contains offsets in the file.
    fn copy(&mut self, segment: &Segment, part: Range<u64>, bias: u64, file: &File) -> Result<()> {
        for offset in part.clone().step_by(PIECE as usize) {
            let size = PIECE.min(part.end - offset);
            let address = segment.address.wrapping_add(offset - segment.offset);
            let bytes = self.bytes(address.wrapping_add(bias), size)?;
            file.write_all_at(&bytes, offset)?;
        }
        Ok(())
    }
}

/// Values of the dynamic section by tag. Of several values for a tag, the first counts.
struct Dynamic(HashMap<u64, u64>);

impl Dynamic {
    fn new(bytes: &[u8]) -> Dynamic {
        let entries = bytes.chunks_exact(16);
        let entries = entries.map(|entry| (Fields(entry).u64(0), Fields(entry).u64(8)));
        let mut dynamic = HashMap::new();
        for (tag, value) in entries.take_while(|(tag, _)| *tag != 0) {
            dynamic.entry(tag).or_insert(value);
        }
        Dynamic(dynamic)
    }

    fn value(&self, tag: u64) -> Option<u64> {
        self.0.get(&tag).copied()
    }
}

/// File as a loader maps it.
struct Image {
    segments: Segments,
    /// Difference between addresses in memory and the file's virtual addresses.
    bias: u64,
}

impl Image {
    fn new(segments: &[Segment], place: Place) -> Result<Image> {
        let segments = Segments::from(segments.to_vec());
        let mut header_biases = segments.biases(0, place.header);
        let bias = header_biases.find(|bias| {
            let mut code_biases = segments.biases(place.offset, place.code);
            code_biases.any(|other| other == *bias)
        });
        drop(header_biases);
        let bias = bias.ok_or_else(|| invalid("mapped in another way than its header says"))?;
        let image = Image { segments, bias };
        let is_sound = image.fixed().all(|segment| {
            let end = segment.offset.checked_add(segment.size);
            end.is_some_and(|end| end <= MAX_OFFSET)
        });
        if is_sound {
            Ok(image)
        } else {
            Err(invalid("its header makes no sense"))
        }
    }

    /// Returns the loaded segments that are not writable.
    fn fixed(&self) -> impl Iterator<Item = &Segment> {
        let loaded = self.segments.loaded();
        loaded.filter(|segment| segment.flags & PF_W == 0)
    }

    /// Returns the offsets in the file from an address of the dynamic section up to the end of its
    /// segment. The dynamic linker may have replaced the virtual address by an address in memory.
    fn offset(&self, address: u64) -> Option<Range<u64>> {
        let find = |address: u64| {
            self.fixed().find_map(|segment| {
                let into = address.checked_sub(segment.address)?;
                let end = segment.offset + segment.size;
                (into < segment.size).then(|| segment.offset + into..end)
            })
        };
        find(address.wrapping_sub(self.bias)).or_else(|| find(address))
    }

    /// Returns the parts of a segment that are copied, as offsets in the file. A small segment is
    /// copied as a whole. Of a large segment, these parts are copied: the tables of symbols, which
    /// linkers put first, `.eh_frame`, which linkers put last, and notes.
    fn parts(
        &self,
        segment: &Segment,
        programs: &[Segment],
        dynamic: &Dynamic,
        frames: Option<u64>,
    ) -> Vec<Range<u64>> {
        let whole = segment.file_range();
        if segment.size <= MAX_WHOLE {
            return vec![whole];
        }
        let table = |tag| Some(self.offset(dynamic.value(tag)?)?.start);
        let is_here = |offset: &u64| whole.contains(offset);
        let tables = [DT_SYMTAB, DT_GNU_HASH, DT_HASH, DT_STRTAB].map(table);
        let last = tables.into_iter().flatten().filter(is_here).max();
        let last_name = table(DT_STRTAB).zip(dynamic.value(DT_STRSZ));
        let symbols = last.map(|last| match last_name {
            // The sizes of the other tables are not known yet.
            Some((names, size)) if names == last => names.saturating_add(size).min(whole.end),
            _ => whole.end,
        });
        let frames = frames.and_then(|frames| {
            let into = match frames {
                0 => 0,
                frames => frames.checked_sub(segment.address)?,
            };
            (into < segment.size).then_some(whole.start + into..whole.end)
        });
        let notes = programs.iter().filter(|program| program.kind == PT_NOTE);
        let notes = notes.filter(|note| is_here(&note.offset)).map(|note| {
            let end = note.file_range().end.min(note.offset + MAX_NOTE);
            note.offset..end.min(whole.end)
        });
        let symbols = symbols.map(|end| whole.start..end);
        symbols.into_iter().chain(frames).chain(notes).collect()
    }

    /// Returns the sections of the dynamic symbols.
    fn symbols(&self, dynamic: &Dynamic, file: &File) -> Option<Vec<Section>> {
        let value = |tag| dynamic.value(tag);
        let table = |tag: u64| self.offset(value(tag)?);
        let (names, symbols) = (table(DT_STRTAB)?, table(DT_SYMTAB)?);
        let hash = table(DT_GNU_HASH);
        let hash_count = table(DT_HASH).and_then(|table| word_at(file, table.start + 4));
        let count = match hash_count {
            Some(count) => count,
            None => count_by_gnu_hash(file, hash.clone()?.start)?,
        };
        let size = SYMBOL_SIZE as u64 * u64::from(count);
        let section = |kind, range: Range<u64>, size: u64, link| Section {
            name: 0,
            kind,
            flags: SHF_ALLOC,
            address: 0,
            offset: range.start,
            size: size.min(range.end - range.start),
            link,
        };
        let names = section(SHT_STRTAB, names, value(DT_STRSZ)?, 0);
        let symbols = section(SHT_DYNSYM, symbols, size, 1);
        let hash = hash.map(|hash| section(SHT_GNU_HASH, hash, u64::MAX, 2));
        Some([names, symbols].into_iter().chain(hash).collect())
    }
}

/// Writes section headers at the end of the file, and then the ELF header with their place.
fn write_sections(
    mut header: Vec<u8>,
    symbols: &[Section],
    code: &[&Segment],
    file: &File,
) -> Result<()> {
    let code = code.iter().map(|segment| Section {
        name: 0,
        kind: SHT_PROGBITS,
        flags: SHF_ALLOC | SHF_EXECINSTR,
        address: segment.address,
        offset: segment.offset,
        size: segment.size,
        link: 0,
    });
    // The first section is empty. Links are indexes that include it.
    let sections: Vec<Section> = std::iter::once(Section::default())
        .chain(symbols.iter().copied())
        .chain(code)
        .collect();
    let at = file.metadata()?.len().next_multiple_of(8);
    let bytes: Vec<u8> = sections.iter().flat_map(section_header).collect();
    file.write_all_at(&bytes, at)?;
    header[40..48].copy_from_slice(&at.to_le_bytes());
    let counts = [SECTION_SIZE as u16, sections.len() as u16, 0];
    header[58..64].copy_from_slice(&counts.map(u16::to_le_bytes).concat());
    file.write_all_at(&header, 0)
}

/// Counts symbols from the highest index of a symbol in `.gnu.hash`
/// (<https://sourceware.org/gnu-gabi/program-loading-and-dynamic-linking.txt>).
fn count_by_gnu_hash(file: &File, at: u64) -> Option<u32> {
    let [buckets, first, words] = [0, 4, 8].map(|field| word_at(file, at + field));
    let (buckets, first, words) = (buckets?, first?, words?);
    let bucket = at + 16 + 8 * u64::from(words);
    if buckets > MAX_BUCKETS {
        return None;
    }
    let mut bytes = vec![0; 4 * buckets as usize];
    file.read_exact_at(&mut bytes, bucket).ok()?;
    let highest = bytes
        .chunks_exact(4)
        .map(|bytes| Fields(bytes).u32(0))
        .max()?;
    let Some(into) = highest.checked_sub(first) else {
        // All buckets are empty.
        return Some(first);
    };
    let chain = bucket + 4 * (u64::from(buckets) + u64::from(into));
    let is_last = |index: u32| {
        let hash = word_at(file, chain + 4 * u64::from(index));
        hash.is_none_or(|hash| hash & 1 == 1)
    };
    let last = (0..MAX_IN_CHAIN).find(|index| is_last(*index))?;
    highest.checked_add(last)?.checked_add(1)
}

/// Returns the bytes of a section header.
fn section_header(section: &Section) -> Vec<u8> {
    let first = [section.name, section.kind].map(u32::to_le_bytes).concat();
    let middle = [section.flags, section.address, section.offset, section.size];
    let link = [section.link, 0].map(u32::to_le_bytes).concat();
    let entry = match section.kind {
        SHT_DYNSYM => SYMBOL_SIZE as u64,
        _ => 0,
    };
    let last = [8, entry].map(u64::to_le_bytes).concat();
    [first, middle.map(u64::to_le_bytes).concat(), link, last].concat()
}

fn invalid(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidData, what.into())
}

fn too_much() -> Error {
    Error::new(ErrorKind::QuotaExceeded, "it takes too much work")
}

fn word_at(file: &File, offset: u64) -> Option<u32> {
    let mut bytes = [0; 4];
    file.read_exact_at(&mut bytes, offset).ok()?;
    Some(u32::from_le_bytes(bytes))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_process_leaves_others_as_much_memory_and_time_as_it_takes() {
        let mut allowance = Allowance::default();
        let spend_all = |allowance: &mut Allowance, slow: bool| {
            let begun = (allowance.bytes, allowance.time);
            while allowance
                .spend(1, |left| {
                    if slow {
                        std::thread::sleep(left.until - Instant::now());
                    } else {
                        left.bytes = 0;
                    }
                    Ok(())
                })
                .is_ok()
            {}
            (begun.0 - allowance.bytes, begun.1 - allowance.time)
        };
        let (bytes, _) = spend_all(&mut allowance, false);
        assert!(bytes <= allowance.bytes && bytes > MAX_BYTES / 4, "{bytes}");
        let (_, time) = spend_all(&mut Allowance::default(), true);
        assert!(time > MAX_TIME / 4 && time < MAX_TIME, "{time:?}");
        let others = |left: &mut Left| Ok(left.bytes);
        assert!(allowance.spend(2, others).unwrap() > MAX_BYTES / 8);
    }
}
