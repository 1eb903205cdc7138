//! Readers of files that targets choose, without a process. Tests and fuzzers use them.

use std::collections::HashMap;
use std::fs::File;
use std::io::Result;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use crate::budget::Allowance;
use crate::charged;
use crate::naming::files::debug_files::DebugFileSearch;
use crate::naming::files::find_at_offsets;
use crate::naming::files::sources::Sources;
use crate::naming::perf_map;
use crate::naming::wanted::Wanted;
use crate::process::memory_image;

/// Names the functions at offsets in an ELF file, like
/// [`Symbolizer::resolve`](crate::Symbolizer::resolve). Searches for debug files only in
/// directories that do not exist.
///
/// # Errors
/// The file is not an ELF file, or a symbol table cannot be read.
pub fn elf(file: &File, offsets: &[u64]) -> Result<HashMap<u64, Arc<str>>> {
    let allowance = Allowance::alone();
    let elf = charged::read(file, &allowance)?;
    let nowhere = Path::new("/dev/null/nowhere");
    let search = DebugFileSearch::new(vec![nowhere.to_owned()]);
    let separate = search.find(&elf, nowhere, Sources::None);
    let file = separate.unwrap_or_default().file;
    let separate = file.as_ref().map(|file| charged::read(file, &allowance));
    let separate = separate.transpose()?;
    let found = find_at_offsets(&elf, separate.as_ref(), nowhere, offsets, Sources::None)?;
    let named = found.into_iter();
    Ok(named
        .filter_map(|(offset, found)| Some((offset, found.symbol?.name)))
        .collect())
}

/// Copies the image of an ELF file from `memory`, which has the bytes of the file at the same
/// offsets.
///
/// # Errors
/// There is no such image, or a part of it is missing.
pub fn memory_image(memory: &File) -> Result<File> {
    const START: u64 = 1 << 32;
    let place = memory_image::Place {
        header: START,
        code: START,
        offset: 0,
    };
    let read = |start: u64, size: usize| {
        let mut bytes = vec![0; size];
        let offset = start.checked_sub(START);
        let read = offset.and_then(|offset| memory.read_at(&mut bytes, offset).ok());
        bytes.truncate(read.unwrap_or(0));
        bytes
    };
    memory_image::Allowance::default().spend(0, |left| memory_image::copy(place, left, read))
}

/// Name of a source file, and the number of a line.
pub type Line = (Arc<str>, u32);

/// Looks up the source lines of offsets in an ELF file with debug information. The last line of an
/// offset is that of the innermost inlined function. Reads no other file.
///
/// # Errors
/// The file is not an ELF file, or a symbol table cannot be read.
pub fn sources(file: &File, offsets: &[u64]) -> Result<HashMap<u64, Vec<Line>>> {
    let nowhere = Path::new("/dev/null/nowhere");
    let allowance = Allowance::alone();
    let elf = charged::read(file, &allowance)?;
    let found = find_at_offsets(&elf, None, nowhere, offsets, Sources::Inlined)?;
    let placed = found.into_iter().map(|(offset, found)| {
        let inlined = found.place.inlined.iter().map(|inlined| &inlined.source);
        let all = [&found.place.source].into_iter().chain(inlined);
        let known = all
            .flatten()
            .map(|source| (Arc::clone(&source.file), source.line));
        (offset, known.collect())
    });
    Ok(placed.collect())
}

/// Names addresses of JIT-compiled code with a perf map.
///
/// # Errors
/// The file cannot be read, or covers the same addresses too often.
pub fn perf_map(file: &File, addresses: &[u64]) -> Result<HashMap<u64, Arc<str>>> {
    let wanted = Wanted::new(addresses.to_vec());
    let names = perf_map::parse(file, &wanted, &Allowance::alone())?;
    let named = wanted.addresses().iter().zip(names);
    Ok(named
        .filter_map(|(address, name)| Some((*address, name?)))
        .collect())
}
