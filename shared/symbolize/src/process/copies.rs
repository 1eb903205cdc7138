//! Code of a file that a process runs from a copy in memory.
//!
//! Some programs copy their code over itself, to have it in huge pages: node with
//! `--use-largepages`, ClickHouse, HHVM, and programs that BOLT links with `--hugify`. In
//! `/proc/PID/maps` such a copy belongs to no file. It fills a gap between mappings of a file.

use std::fs::File;
use std::os::unix::fs::FileExt;

use ::process::ProcessMemory;
use elf::Segments;

use crate::losses::Losses;
use crate::process::images::{Image, Images};
use crate::process::maps::{Entry, Maps};
use crate::process::proc::Proc;

/// Maximum number of possible copies in one process that are compared. Each takes a few reads of
/// memory.
const MAX_COPIES: usize = 64;
/// Number of bytes that are compared at each of three places: the beginning, the middle and the
/// end.
const COMPARED: usize = 4096;

/// Executable mappings that are copies.
pub(crate) struct Copies {
    /// Index of each mapping, file, and offset in the file in bytes.
    pub(crate) found: Vec<(usize, Image, u64)>,
    /// `true` if the process may have more copies.
    pub(crate) are_cut: bool,
}

/// Finds the executable mappings that are copies.
///
/// A copy is between two mappings of its file, which show the same load address. The program
/// headers say that the file has executable code at this place. The memory there has the same bytes
/// as the file.
pub(crate) fn find(pid: u32, proc: &Proc, maps: &Maps, images: &mut Images) -> Copies {
    let mut found = Vec::new();
    let mut compared = 0;
    let mut are_cut = false;
    let mut last: Option<(&Entry, Option<Loaded>)> = None;
    let memory = ProcessMemory::new(pid);
    for (index, entry) in maps.code.iter().enumerate() {
        if !entry.is_memory() {
            continue;
        }
        let after = maps
            .around
            .partition_point(|other| other.start < entry.start);
        let (Some(before), Some(behind)) = (maps.around[..after].last(), maps.around.get(after))
        else {
            continue;
        };
        if !before.has_file_of(behind) {
            continue;
        }
        if last.as_ref().is_none_or(|(known, _)| *known != before) {
            last = Some((before, Loaded::read(proc, before, behind, images)));
        }
        let Some((_, Some(loaded))) = &last else {
            continue;
        };
        let addresses = [entry.start, entry.end].map(|end| end.wrapping_sub(loaded.bias));
        let Some(offset) = loaded.segments.code_offset(addresses[0]..addresses[1]) else {
            continue;
        };
        if compared >= MAX_COPIES {
            are_cut = true;
            break;
        }
        compared += 1;
        let file = images.file(loaded.file).map(|mapped| &mapped.file);
        if file.is_some_and(|file| is_copy(&memory, entry, file, offset)) {
            found.push((index, Image::File(loaded.file), offset));
        }
    }
    Copies { found, are_cut }
}

/// File, with the load address that two of its mappings show.
struct Loaded {
    file: u32,
    segments: Segments,
    /// Difference between addresses in memory and the file's virtual addresses.
    bias: u64,
}

impl Loaded {
    fn read(proc: &Proc, before: &Entry, behind: &Entry, images: &mut Images) -> Option<Loaded> {
        // These losses are not counted. Code without a file may be unrelated to the files next to
        // it, so nothing of the process is missing.
        let mut unsaid = Losses::default();
        let Image::File(file) = images.image(proc, before, &mut unsaid) else {
            return None;
        };
        let segments = Segments::read(&images.file(file)?.file).ok()?;
        let bias = segments.biases(before.offset, before.start).find(|bias| {
            let mut others = segments.biases(behind.offset, behind.start);
            others.any(|other| other == *bias)
        })?;
        Some(Loaded {
            file,
            segments,
            bias,
        })
    }
}

/// Returns whether memory and the file have the same bytes at the beginning, in the middle and at
/// the end.
fn is_copy(memory: &ProcessMemory, entry: &Entry, file: &File, offset: u64) -> bool {
    let length = entry.end - entry.start;
    let most = COMPARED as u64;
    let last = length.saturating_sub(most);
    [0, last / 2, last].into_iter().all(|at| {
        let mut expected = [0; COMPARED];
        let Ok(read) = file.read_at(&mut expected, offset.saturating_add(at)) else {
            return false;
        };
        // The last page may have fewer bytes in the file than in memory.
        read > 0 && memory.bytes(entry.start + at, read) == expected[..read]
    })
}
