//! Separate debug files, in which distributions keep the symbols of stripped programs.
//!
//! The search follows gdb's rule ("Debugging Information in Separate Files" in its manual). It
//! first looks for the build ID under the debug directories. Then it looks for the debug link, next
//! to the program and under the debug directories.

use std::fs::File;
use std::io::{Result, Write};
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use elf::layout::SHT_SYMTAB;
use rustix::fs::{MemfdFlags, memfd_create};

use crate::budget::Allowance;
use crate::charged::{self, Elf};
use crate::naming::files::sources::{Sources, has_debug_information};
use crate::process::open;
use crate::remote::{DebugFiles, FindBuildId};

/// Places in which debug files are searched for.
pub(crate) struct DebugFileSearch {
    /// Directories with separate debug files.
    directories: Arc<[PathBuf]>,
    remote: Option<Arc<dyn DebugFiles>>,
    /// Time until which a search waits for the remote source; `None` if it does not wait.
    until: Option<Instant>,
}

/// Result of a search.
#[derive(Default)]
pub(crate) struct Separate {
    /// Debug file, if there is one.
    pub(crate) file: Option<File>,
    /// True if the remote source may still have a better file.
    pub(crate) is_pending: bool,
}

/// Parts that a file lacks.
struct Lacks {
    symbols: bool,
    lines: bool,
}

impl Lacks {
    fn new(elf: &Elf<'_>, sources: Sources) -> Lacks {
        Lacks {
            symbols: elf.section_of_kind(SHT_SYMTAB).is_none(),
            lines: sources != Sources::None && !has_debug_information(elf),
        }
    }

    fn any(&self) -> bool {
        self.symbols || self.lines
    }

    /// Returns whether even the symbols in the file's `.gnu_debugdata` do not suffice.
    fn all_but_a_debug_file(&self, elf: &Elf<'_>) -> bool {
        self.lines || self.symbols && !elf.has_mini_debug_information()
    }
}

impl DebugFileSearch {
    pub(crate) fn new(directories: Vec<PathBuf>) -> DebugFileSearch {
        DebugFileSearch {
            directories: directories.into(),
            remote: None,
            until: None,
        }
    }

    /// Sets the source of debug files that are not on this machine.
    pub(crate) fn set_remote(&mut self, remote: Arc<dyn DebugFiles>) {
        self.remote = Some(remote);
    }

    /// Lets searches wait for the remote source from now on.
    pub(crate) fn begin_to_wait(&mut self) {
        let patience = self.remote.as_ref().map(|remote| remote.patience());
        self.until = patience.and_then(|patience| Instant::now().checked_add(patience));
    }

    /// Requests the debug file of a program that was mapped from `path`, if the program needs one
    /// that is not on this machine. Another thread reads the program.
    pub(crate) fn request(&self, file: &File, path: &Path, sources: Sources) {
        let Some((remote, file)) = self.remote.as_ref().zip(file.try_clone().ok()) else {
            return;
        };
        let (path, directories) = (path.to_owned(), Arc::clone(&self.directories));
        let find: FindBuildId = Box::new(move || {
            let allowance = Allowance::brief();
            let elf = charged::read(&file, &allowance).ok()?;
            let lacks = Lacks::new(&elf, sources);
            let is_missing = lacks.all_but_a_debug_file(&elf)
                && find_separate(&elf, &path, &directories).is_none();
            is_missing.then(|| elf.build_id())?
        });
        remote.request(find);
    }

    /// Finds the debug file of a program that was mapped from `path`, if the program lacks symbols,
    /// or lines for `sources`. If there is no debug file, copies the symbols in the program's
    /// `.gnu_debugdata` to a file.
    ///
    /// A debug file must be from the same build. It has the same build ID, or the checksum in the
    /// program's debug link.
    ///
    /// # Errors
    /// The program's `.gnu_debugdata` cannot be read or decompressed.
    pub(crate) fn find(&self, elf: &Elf<'_>, path: &Path, sources: Sources) -> Result<Separate> {
        let lacks = Lacks::new(elf, sources);
        if !lacks.any() {
            return Ok(Separate::default());
        }
        let mut file = find_separate(elf, path, &self.directories);
        let mut is_pending = false;
        if file.is_none()
            && lacks.all_but_a_debug_file(elf)
            && let Some(remote) = &self.remote
            && let Some(build_id) = elf.build_id()
        {
            file = remote.get(&build_id, self.until);
            is_pending = file.is_none() && self.until.is_none();
        }
        if file.is_none() && lacks.symbols && elf.has_mini_debug_information() {
            let mut mini = File::from(memfd_create("symbols", MemfdFlags::CLOEXEC)?);
            elf.mini_debug_information(|piece| mini.write_all(piece))?;
            file = Some(mini);
        }
        Ok(Separate { file, is_pending })
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
