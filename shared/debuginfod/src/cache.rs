//! Cache of debug files, with the layout of elfutils: `BUILDID/debuginfo`. An empty file there
//! means that no server had the file when the empty file was made.
//!
//! The folder must belong to the user of this process, and nobody else may write to it. Nobody else
//! can therefore put files or links there.

use std::fs::File;
use std::io::{self, Error, ErrorKind, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, fchmod, flock, fstat, linkat, mkdirat,
    openat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use tempfile::NamedTempFile;

use crate::build_id::BuildId;

/// Name of a debug file in the folder of its build ID.
const NAME: &str = "debuginfo";
/// File with the number of seconds for which a missing file is not asked for again.
const MISS_AGE: &str = "cache_miss_s";
/// Number of these seconds without that file, as in elfutils.
const DEFAULT_MISS_AGE: Duration = Duration::from_secs(600);

/// Cache of debug files.
#[derive(Debug)]
pub struct Cache {
    folder: OwnedFd,
}

/// Answer of the cache.
#[derive(Debug)]
pub(crate) enum Cached {
    /// The file, which is from the build.
    File(File),
    /// No server had the file a short time ago.
    Absent,
    /// The cache does not know the file.
    Unknown,
}

/// Folder of a build ID in the cache.
pub(crate) struct Entry<'i> {
    build_id: &'i BuildId,
    folder: OwnedFd,
    miss_age: Duration,
}

impl Cache {
    /// Makes a cache of an open folder.
    ///
    /// # Errors
    /// Somebody else owns the folder, or may write to it.
    pub fn new(folder: OwnedFd) -> io::Result<Cache> {
        let stat = fstat(&folder)?;
        if stat.st_uid != geteuid().as_raw() {
            return Err(Error::other(format!(
                "it belongs to another user, whose ID is {}",
                stat.st_uid
            )));
        }
        if stat.st_mode & 0o022 != 0 {
            return Err(Error::other("other users may write to it"));
        }
        Ok(Cache { folder })
    }

    /// Opens the folder of a build ID, and makes it if it is missing.
    pub(crate) fn entry<'i>(&self, build_id: &'i BuildId) -> io::Result<Entry<'i>> {
        let name = build_id.to_string();
        match mkdirat(&self.folder, &name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Entry {
            build_id,
            folder: openat(&self.folder, &name, flags, Mode::empty())?,
            miss_age: self.miss_age(),
        })
    }

    fn miss_age(&self) -> Duration {
        const LONGEST: u64 = 32;
        let read = || -> io::Result<Option<Duration>> {
            let file = open(&self.folder, MISS_AGE)?;
            let mut text = String::new();
            file.take(LONGEST).read_to_string(&mut text)?;
            Ok(text.trim().parse().ok().map(Duration::from_secs))
        };
        read().ok().flatten().unwrap_or(DEFAULT_MISS_AGE)
    }
}

/// Opens a regular file in a folder. Follows no link.
fn open(folder: impl AsFd, name: &str) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(folder, name, flags, Mode::empty())?;
    let kind = FileType::from_raw_mode(fstat(&file)?.st_mode);
    if kind != FileType::RegularFile {
        return Err(Error::new(ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok(file.into())
}

impl Entry<'_> {
    /// Looks up the file. Removes a file that is not from the build, and an old note that the file
    /// is missing.
    pub(crate) fn look_up(&self) -> Cached {
        let found = match open(&self.folder, NAME) {
            Ok(file) => self.judge(file),
            Err(error) if error.kind() == ErrorKind::NotFound => return Cached::Unknown,
            Err(_) => Cached::Unknown,
        };
        if matches!(found, Cached::Unknown) {
            self.remove();
        }
        found
    }

    fn judge(&self, file: File) -> Cached {
        let Ok(metadata) = file.metadata() else {
            return Cached::Unknown;
        };
        if metadata.len() > 0 {
            let is_from_build = self.build_id.is_of(&file);
            return if is_from_build {
                Cached::File(file)
            } else {
                Cached::Unknown
            };
        }
        let age = metadata.modified().map(|time| {
            let age = SystemTime::now().duration_since(time);
            age.unwrap_or_default()
        });
        match age {
            Ok(age) if age <= self.miss_age => Cached::Absent,
            _ => Cached::Unknown,
        }
    }

    fn remove(&self) {
        let _ = unlinkat(&self.folder, NAME, AtFlags::empty());
    }

    /// Locks the folder against other processes of these tools, if none of them holds the lock.
    /// The lock ends with `self`. Returns whether this process may go on.
    pub(crate) fn lock(&self) -> bool {
        // Some file systems have no locks. Two processes may then fetch the same file.
        flock(&self.folder, FlockOperation::NonBlockingLockExclusive) != Err(Errno::WOULDBLOCK)
    }

    /// Notes that no server has the file.
    pub(crate) fn note_absent(&self) {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666);
        let _ = openat(&self.folder, NAME, flags, mode);
    }

    /// Begins a file, which has no name until it is whole.
    pub(crate) fn begin(&self) -> io::Result<Partial> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        match openat(&self.folder, ".", flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => Ok(Partial::Nameless(file.into())),
            // Some file systems have no files without a name.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
                let prefix = format!("{NAME}.");
                let named = tempfile::Builder::new()
                    .prefix(&prefix)
                    .rand_bytes(6)
                    .tempfile_in(self.path())?;
                Ok(Partial::Named(named))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Renames a whole file to its final name, and returns the file.
    pub(crate) fn finish(&self, partial: Partial) -> io::Result<File> {
        // As elfutils does: nobody writes to a file in the cache by accident.
        fchmod(partial.file(), Mode::RUSR)?;
        match partial {
            Partial::Nameless(file) => {
                let path = format!("/proc/self/fd/{}", file.as_raw_fd());
                let link = || linkat(CWD, &path, &self.folder, NAME, AtFlags::SYMLINK_FOLLOW);
                match link() {
                    Err(Errno::EXIST) => {
                        self.remove();
                        link()?;
                    }
                    linked => linked?,
                }
                Ok(file)
            }
            Partial::Named(file) => {
                let path = self.path().join(NAME);
                Ok(file.persist(path).map_err(|error| error.error)?)
            }
        }
    }

    /// Returns a path of the open folder, valid as long as `self` lives.
    fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.folder.as_raw_fd()).into()
    }
}

/// File that is not whole yet. Nothing of it remains if it is dropped.
pub(crate) enum Partial {
    Nameless(File),
    Named(NamedTempFile),
}

impl Partial {
    pub(crate) fn file(&self) -> &File {
        match self {
            Partial::Nameless(file) => file,
            Partial::Named(file) => file.as_file(),
        }
    }
}
