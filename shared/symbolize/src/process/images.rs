//! Mapped files. Each is opened once and kept open.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::frame::Module;
use crate::losses::Losses;
use crate::process::maps::Entry;
use crate::process::memory_image;
use crate::process::proc::Proc;

/// Image behind a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Image {
    /// ELF file, as an index for [`Images::file`].
    File(u32),
    /// Memory into which a program wrote code.
    Jit,
    /// vDSO of the kernel.
    Vdso,
    /// File of which only the name is known, as an index for [`Images::module`].
    Module(u32),
}

/// ELF file that a process maps.
#[derive(Debug)]
pub(crate) struct MappedFile {
    /// The mapped file, even if its path now leads to another file or to none.
    pub(crate) file: File,
    /// Path in the mount namespace of the process that maps the file.
    pub(crate) path: PathBuf,
    /// Module of the file. It has a build ID once the file has been read.
    pub(crate) module: Arc<Module>,
}

/// Device, inode and path of a mapping.
type Key = (u64, u64, Vec<u8>);

/// All mapped files.
pub(crate) struct Images {
    /// Images by their key in `/proc/PID/maps`. The open descriptors keep inode and device numbers
    /// from being used again. The path distinguishes overlay mounts that share inode numbers.
    known: HashMap<Key, Image>,
    /// Files by device and inode. A file may have many paths.
    opened: HashMap<(u64, u64), u32>,
    /// Files that could not be opened, by their key in `/proc/PID/maps` and the user IDs of the
    /// process. Users of a process choose the contents of its memory. An image from that memory is
    /// therefore used only for processes of the same users.
    by_users: HashMap<(Key, Vec<u32>), Image>,
    memory_images: memory_image::Allowance,
    files: Vec<MappedFile>,
    modules: Vec<Arc<Module>>,
    module_indexes: HashMap<Box<[u8]>, u32>,
    most_files: usize,
}

impl Images {
    /// Returns an empty set, which opens at most `most_files` files.
    pub(crate) fn new(most_files: usize) -> Self {
        Self {
            known: HashMap::new(),
            opened: HashMap::new(),
            by_users: HashMap::new(),
            memory_images: memory_image::Allowance::default(),
            files: Vec::new(),
            modules: Vec::new(),
            module_indexes: HashMap::new(),
            most_files,
        }
    }

    /// Returns the file of an [`Image::File`].
    pub(crate) fn file(&self, index: u32) -> Option<&MappedFile> {
        self.files.get(index as usize)
    }

    /// Sorts files by size. A file that is costly to read then does not keep smaller files from
    /// being read.
    pub(crate) fn by_size(&self, files: impl Iterator<Item = u32>) -> Vec<u32> {
        let size = |index: &u32| {
            let metadata = self.file(*index).map(|mapped| mapped.file.metadata());
            metadata.and_then(Result::ok).map(|metadata| metadata.len())
        };
        let mut files: Vec<u32> = files.collect();
        files.sort_by_cached_key(|file| (size(file), *file));
        files
    }

    /// Sets the module of the file of an [`Image::File`].
    pub(crate) fn set_module(&mut self, index: u32, module: Arc<Module>) {
        if let Some(file) = self.files.get_mut(index as usize) {
            file.module = module;
        }
    }

    /// Returns the module of an [`Image::Module`].
    pub(crate) fn module(&self, index: u32) -> Option<&Arc<Module>> {
        self.modules.get(index as usize)
    }

    /// Finds or opens the image behind a mapping of a process.
    pub(crate) fn image(&mut self, proc: &Proc, entry: &Entry, losses: &mut Losses) -> Image {
        let path = entry.path.strip_suffix(b" (deleted)");
        let path = path.unwrap_or(&entry.path);
        match path {
            // A 32-bit process has a different vDSO.
            b"[vdso]" if entry.start > u64::from(u32::MAX) => return Image::Vdso,
            b"" | b"[heap]" | b"[stack]" => return Image::Jit,
            _ if path.starts_with(b"[anon") => return Image::Jit,
            _ if path.starts_with(b"[") => return self.add_module(path),
            _ => {}
        }
        let key = (entry.device, entry.inode, entry.path.clone());
        if let Some(&image) = self.known.get(&key) {
            return image;
        }
        let user_key = || (key.clone(), proc.users().to_vec());
        if !self.by_users.is_empty()
            && let Some(&image) = self.by_users.get(&user_key())
        {
            return image;
        }
        match self.open(proc, entry, path, losses) {
            Ok(image) => {
                self.known.insert(key, image);
                image
            }
            Err(error) => self.copy_from_memory(proc, entry, (user_key(), path), &error, losses),
        }
    }

    fn open(
        &mut self,
        proc: &Proc,
        entry: &Entry,
        path: &[u8],
        losses: &mut Losses,
    ) -> Result<Image> {
        if self.files.len() >= self.most_files {
            losses.crowded_files += 1;
            losses.note(&String::from_utf8_lossy(path), "too many open files");
            return Ok(self.add_module(path));
        }
        let (file, stat) = proc.mapped(entry)?;
        if let Some(&index) = self.opened.get(&(stat.st_dev, stat.st_ino)) {
            return Ok(Image::File(index));
        }
        if !is_elf(&file) {
            return Ok(if is_memory(path) {
                Image::Jit
            } else {
                self.add_module(path)
            });
        }
        let index = self.add_file(file, path);
        self.opened.insert((stat.st_dev, stat.st_ino), index);
        Ok(Image::File(index))
    }

    /// Copies a file from the memory of a process that maps it. `why` is the error of opening the
    /// file.
    fn copy_from_memory(
        &mut self,
        proc: &Proc,
        entry: &Entry,
        (key, path): ((Key, Vec<u32>), &[u8]),
        why: &Error,
        losses: &mut Losses,
    ) -> Image {
        let image = match proc.memory_image(entry, &mut self.memory_images) {
            Ok(file) => Image::File(self.add_file(file, path)),
            Err(_) => {
                losses.unopened_files += 1;
                losses.note(&String::from_utf8_lossy(path), why);
                self.add_module(path)
            }
        };
        // After `NotFound`, the process or this mapping may no longer exist.
        let is_file = matches!(image, Image::File(_));
        if is_file || why.kind() != ErrorKind::NotFound {
            self.by_users.insert(key, image);
        }
        image
    }

    fn add_file(&mut self, file: File, path: &[u8]) -> u32 {
        let index = self.files.len() as u32;
        self.files.push(MappedFile {
            file,
            path: path_of(path),
            module: Module::mapped(path).into(),
        });
        index
    }

    fn add_module(&mut self, path: &[u8]) -> Image {
        if let Some(&index) = self.module_indexes.get(path) {
            return Image::Module(index);
        }
        let index = self.modules.len() as u32;
        self.modules.push(Module::mapped(path).into());
        self.module_indexes.insert(path.into(), index);
        Image::Module(index)
    }
}

fn is_elf(file: &File) -> bool {
    let mut magic = [0; 4];
    file.read_exact_at(&mut magic, 0).is_ok() && &magic == b"\x7fELF"
}

/// Returns whether the name of a mapped file only names memory. JIT compilers use such files to map
/// their code twice.
fn is_memory(path: &[u8]) -> bool {
    [&b"/memfd:"[..], b"/dev/zero", b"/dev/shm/", b"/SYSV"]
        .iter()
        .any(|prefix| path.starts_with(prefix))
}

fn path_of(path: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    Path::new(std::ffi::OsStr::from_bytes(path)).to_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Returns an entry for a mapping that this process does not have.
    fn entry(start: u64, path: &[u8]) -> Entry {
        Entry {
            start,
            end: start + 1,
            offset: 0,
            device: 0,
            inode: 0,
            path: path.to_vec(),
        }
    }

    #[test]
    fn names_in_brackets_are_no_files() {
        let proc = Proc::open(std::process::id()).unwrap();
        let mut images = Images::new(10);
        let mut losses = Losses::default();
        let mut image = |start, path| images.image(&proc, &entry(start, path), &mut losses);
        assert_eq!(image(1 << 40, b"[vdso]"), Image::Vdso);
        for path in [
            &b""[..],
            b"[heap]",
            b"[stack]",
            b"[anon:jit]",
            b"[anon_shmem:jit]",
        ] {
            assert_eq!(image(1 << 40, path), Image::Jit);
        }
        // A 32-bit process has a different vDSO.
        let other = image(u32::MAX.into(), b"[vdso]");
        assert_eq!(other, Image::Module(0));
        assert_eq!(image(1 << 40, b"[vsyscall]"), Image::Module(1));
        assert_eq!(losses, Losses::default());
        assert_eq!(images.module(0).map(|module| &*module.name), Some("vdso"));
    }

    #[test]
    fn what_cannot_be_opened_is_counted() {
        let proc = Proc::open(std::process::id()).unwrap();
        let own = || {
            let entries = Proc::open(std::process::id())
                .unwrap()
                .mappings()
                .unwrap()
                .code;
            let file = |entry: &Entry| entry.path.starts_with(b"/");
            entries.into_iter().find(file).unwrap()
        };
        let mut losses = Losses::default();
        // The file may be missing only at this moment, so each call tries to open it again.
        let mut images = Images::new(10);
        for count in [1, 2] {
            let gone = images.image(&proc, &entry(1, b"/nowhere/at all"), &mut losses);
            assert_eq!((gone, losses.unopened_files), (Image::Module(0), count));
        }
        assert_eq!(images.image(&proc, &own(), &mut losses), Image::File(0));
        assert_eq!(losses.unopened_files, 2);
        // If too many files are open, the first failure decides for all later calls.
        let mut images = Images::new(0);
        for _ in 0..2 {
            let closed = images.image(&proc, &own(), &mut losses);
            assert_eq!((closed, losses.crowded_files), (Image::Module(0), 1));
        }
    }

    #[test]
    fn some_files_are_but_names_for_memory() {
        for path in ["/memfd:jit", "/dev/zero", "/dev/shm/jit", "/SYSV00000000"] {
            assert!(is_memory(path.as_bytes()), "{path}");
        }
        for path in ["/usr/bin/memfd:", "/dev/null", "jit"] {
            assert!(!is_memory(path.as_bytes()), "{path}");
        }
    }
}
