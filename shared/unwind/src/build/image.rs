//! Reads the code and the call frame information of an image.

use elf::layout::PT_GNU_EH_FRAME;
use elf::{Elf, Segment, Source};
use process::ELF_MACHINE;

use crate::error::Error;

/// Maximum size of a section, in bytes. Its compressed and its decompressed size count together.
/// The largest `.eh_frame`, of a browser built with all debugging aids, has about 60 MiB.
const SECTION_LIMIT: u64 = 256 << 20;

/// Maximum number of executable segments. Linked files have one or two.
const SEGMENT_LIMIT: u64 = 32;

const EH_FRAME: &str = ".eh_frame";
const DEBUG_FRAME: &str = ".debug_frame";

/// Reads the headers of an image for this architecture.
pub(crate) fn read<S: Source>(source: S) -> Result<Elf<S>, Error> {
    match Elf::read_loaded(source) {
        Ok(elf) if elf.header().is_for(ELF_MACHINE) => Ok(elf),
        Ok(_) | Err(elf::Error::NotElf) => Err(Error::Unsupported),
        Err(error) => Err(error.into()),
    }
}

/// Returns the segments with code.
pub(crate) fn code_segments<S: Source>(elf: &Elf<S>) -> Result<Vec<Segment>, Error> {
    let code = elf.segments().code();
    let segments: Vec<Segment> = code
        .filter(|segment| segment.address.checked_add(segment.size).is_some())
        .copied()
        .collect();
    Error::limit("executable segments", segments.len() as u64, SEGMENT_LIMIT)?;
    Ok(segments)
}

/// Returns the address and the bytes of `.eh_frame`.
pub(crate) fn eh_frame<S: Source>(elf: &Elf<S>) -> Result<(u64, Vec<u8>), Error> {
    match elf.section(EH_FRAME) {
        Some(section) => {
            let room = &mut SECTION_LIMIT.clone();
            let bytes = elf.section_contents(EH_FRAME, section, room)?;
            Ok((section.address, bytes))
        }
        None => Ok(eh_frame_by_program_header(elf)?.unwrap_or_default()),
    }
}

/// Returns the decompressed bytes of `.debug_frame`; `None` if the image has none.
pub(crate) fn debug_frame<S: Source>(elf: &Elf<S>) -> Result<Option<Vec<u8>>, Error> {
    if !elf.has_contents(DEBUG_FRAME) {
        return Ok(None);
    }
    let bytes = elf.contents(DEBUG_FRAME, &mut SECTION_LIMIT.clone())?;
    Ok(Some(bytes))
}

/// Returns `.debug_frame` of the ELF file in `.gnu_debugdata`; no bytes if there is none.
pub(crate) fn mini_debug_frame<S: Source>(elf: &Elf<S>) -> Result<Vec<u8>, Error> {
    let mut mini = Vec::new();
    if !elf.has_mini_debug_information() {
        return Ok(mini);
    }
    elf.mini_debug_information(|piece| {
        mini.extend_from_slice(piece);
        Ok::<(), elf::Error>(())
    })?;
    Ok(debug_frame(&read(&mini)?)?.unwrap_or_default())
}

/// Finds `.eh_frame` by the program header for `.eh_frame_hdr` (Linux Standard Base Core 5.0,
/// section 10.6.2). Returns its address, and the bytes from there to the end of its segment.
fn eh_frame_by_program_header<S: Source>(elf: &Elf<S>) -> Result<Option<(u64, Vec<u8>)>, Error> {
    let mut headers = elf.segments().iter();
    let Some(header) = headers.find(|segment| segment.kind == PT_GNU_EH_FRAME) else {
        return Ok(None);
    };
    // Version and encodings take 4 bytes, and an encoded pointer at most 10.
    let bytes = elf.bytes(".eh_frame_hdr", header.offset, header.size.min(32))?;
    let bases = gimli::BaseAddresses::default().set_eh_frame_hdr(header.address);
    let Some(address) = gimli::EhFrameHdr::new(&bytes, gimli::LittleEndian)
        .parse(&bases, 8)
        .and_then(|header| header.eh_frame_ptr().direct())
        .ok()
    else {
        return Ok(None);
    };
    for segment in elf.segments().loaded() {
        let into = address.wrapping_sub(segment.address);
        if into < segment.size {
            let size = segment.size - into;
            Error::limit(EH_FRAME, size, SECTION_LIMIT)?;
            let offset = segment.offset.saturating_add(into);
            return Ok(Some((address, elf.bytes(EH_FRAME, offset, size)?)));
        }
    }
    Ok(None)
}
