//! Separate debug files, in which distributions keep the symbols of stripped programs.
//!
//! The search follows gdb's rule ("Debugging Information in Separate Files" in its manual). It
//! first looks for the build ID under the debug directories. Then it looks for the debug link, next
//! to the program and under the debug directories.

use std::fs::File;
use std::io::{Result, Write};
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};

use elf::layout::SHT_SYMTAB;
use rustix::fs::{MemfdFlags, memfd_create};

use crate::budget::Allowance;
use crate::charged::{self, Elf};
use crate::process::open;

/// Finds the debug file of a program that was mapped from `path`. If there is none, copies the
/// symbols in the program's `.gnu_debugdata` to a file.
///
/// A debug file must be from the same build. It has the same build ID, or the checksum in the
/// program's debug link.
///
/// # Errors
/// The program's `.gnu_debugdata` cannot be read or decompressed.
pub(crate) fn find(elf: &Elf<'_>, path: &Path, directories: &[PathBuf]) -> Result<Option<File>> {
    match find_separate(elf, path, directories) {
        Some(file) => Ok(Some(file)),
        None if elf.has_mini_debug_information() => {
            let mut file = File::from(memfd_create("symbols", MemfdFlags::CLOEXEC)?);
            elf.mini_debug_information(|piece| file.write_all(piece))?;
            Ok(Some(file))
        }
        None => Ok(None),
    }
}

fn find_separate(elf: &Elf<'_>, path: &Path, directories: &[PathBuf]) -> Option<File> {
    let build_id = elf.build_id();
    if let Some(place) = build_id.as_deref().and_then(build_id_path) {
        let mut places = directories.iter().map(|directory| directory.join(&place));
        let matching = |debug: &Elf<'_>, _: &File| debug.build_id() == build_id;
        if let Some(found) = places.find_map(|place| open_matching(elf, &place, matching)) {
            return Some(found);
        }
    }
    let (name, checksum) = elf.debug_link()?;
    let mut components = Path::new(&name).components();
    let (Some(Component::Normal(_)), None) = (components.next(), components.next()) else {
        return None;
    };
    let folder = path.parent()?;
    let beside = [folder.join(&name), folder.join(".debug").join(&name)];
    let below = folder.strip_prefix("/").unwrap_or(folder);
    let central = directories
        .iter()
        .map(|directory| directory.join(below).join(&name));
    beside.into_iter().chain(central).find_map(|place| {
        open_matching(elf, &place, |debug, file| {
            match (&build_id, debug.build_id()) {
                (Some(ours), Some(theirs)) => *ours == theirs,
                _ => checksum_of(file, elf.source().allowance) == Some(checksum),
            }
        })
    })
}

/// Opens a file, if it has a symbol table and passes a check.
fn open_matching(
    program: &Elf<'_>,
    path: &Path,
    matching: impl Fn(&Elf<'_>, &File) -> bool,
) -> Option<File> {
    let (file, _) = open::regular_here(path).ok()?;
    let elf = charged::read(&file, program.source().allowance).ok()?;
    (elf.section_of_kind(SHT_SYMTAB).is_some() && matching(&elf, &file)).then_some(file)
}

/// Returns the path `.build-id/ab/cdef….debug` for this build ID.
fn build_id_path(build_id: &[u8]) -> Option<PathBuf> {
    let (first, rest) = build_id.split_first()?;
    if rest.is_empty() || rest.len() > 64 {
        return None;
    }
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(format!(".build-id/{first:02x}/{rest}.debug").into())
}

/// Returns the CRC-32 of a whole file, if the allowance suffices.
fn checksum_of(file: &File, allowance: &Allowance) -> Option<u32> {
    const MAX_BYTES: u64 = 1 << 30;
    let size = file.metadata().ok()?.len();
    if size > MAX_BYTES {
        allowance.refuse("its debug file is too large for a checksum");
        return None;
    }
    allowance.take(size).ok()?;
    let mut hasher = crc32fast::Hasher::new();
    let mut piece = vec![0; 256 << 10];
    let mut offset = 0;
    while offset <= size {
        let read = file.read_at(&mut piece, offset).ok()?;
        if read == 0 {
            return Some(hasher.finalize());
        }
        hasher.update(&piece[..read]);
        offset += read as u64;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_ids_become_paths() {
        let path = build_id_path(&[0xab, 0xcd, 0x01]);
        assert_eq!(path, Some(".build-id/ab/cd01.debug".into()));
        assert_eq!(build_id_path(&[0xab]), None);
        assert_eq!(build_id_path(&[]), None);
        assert!(build_id_path(&[0; 65]).is_some());
        assert_eq!(build_id_path(&[0; 66]), None);
    }
}
