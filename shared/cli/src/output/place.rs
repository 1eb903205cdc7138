//! The place that a path leads to: a folder that is held open, and a name in it.
//!
//! Root writes where other users may write, too, such as `/tmp`. A link that another user left
//! there must not choose which file is replaced, whatever `fs.protected_symlinks` says: only
//! links of root's and of the caller's own are followed.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, PROC_SUPER_MAGIC, Stat, fstat, fstatfs, openat,
    readlinkat, statat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

/// Maximum links that are followed, as in the kernel's own resolution of paths.
const MOST_LINKS: usize = 40;

/// A name in a folder. It stays in that folder, whatever happens to the path meanwhile.
#[derive(Debug)]
pub struct Place {
    folder: OwnedFd,
    name: OsString,
    existing: Option<Existing>,
}

/// Kind of file that has the name already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Existing {
    Folder,
    /// A regular file; `mode` if it is the caller's own.
    File {
        mode: Option<u32>,
    },
    /// A pipe, a device, or an open file of this process: written directly.
    Stream,
}

impl Place {
    /// Finds the place of `path`, through the links that may be followed.
    ///
    /// # Errors
    /// A folder on the way is missing, or a link on the way is another user's.
    pub fn find(path: &Path) -> io::Result<Place> {
        let mut folder = openat(CWD, ".", FOLDER, Mode::empty())?;
        let mut left = Vec::new();
        push_components(&mut left, path);
        let mut links = 0;
        while let Some(name) = left.pop() {
            let found = match statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(found) => found,
                Err(Errno::NOENT) if left.is_empty() => return Ok(Place::missing(folder, name)),
                Err(error) => return Err(error.into()),
            };
            if FileType::from_raw_mode(found.st_mode) != FileType::Symlink {
                if left.is_empty() {
                    return Place::existing(folder, name, &found);
                }
                folder = openat(&folder, &name, FOLDER, Mode::empty())?;
                continue;
            }
            if !is_trusted(&found) {
                return Err(foreign("a link", &found));
            }
            if left.is_empty()
                && fstatfs(&folder)?.f_type == PROC_SUPER_MAGIC
                && is_open_file(&name)
            {
                return Ok(Place {
                    folder,
                    name,
                    existing: Some(Existing::Stream),
                });
            }
            links += 1;
            if links > MOST_LINKS {
                return Err(Errno::LOOP.into());
            }
            let target = readlinkat(&folder, &name, Vec::new())?;
            push_components(&mut left, Path::new(OsStr::from_bytes(target.as_bytes())));
        }
        Ok(Place {
            folder,
            name: OsString::new(),
            existing: Some(Existing::Folder),
        })
    }

    fn missing(folder: OwnedFd, name: OsString) -> Place {
        let existing = (name == "..").then_some(Existing::Folder);
        Place {
            folder,
            name,
            existing,
        }
    }

    fn existing(folder: OwnedFd, name: OsString, found: &Stat) -> io::Result<Place> {
        let existing = match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => Existing::Folder,
            FileType::RegularFile => Existing::File {
                mode: (found.st_uid == geteuid().as_raw()).then_some(found.st_mode & 0o777),
            },
            FileType::Fifo if !is_trusted(found) => return Err(foreign("a pipe", found)),
            _ => Existing::Stream,
        };
        Ok(Place {
            folder,
            name,
            existing: Some(existing),
        })
    }

    pub(super) fn what_exists(&self) -> Option<Existing> {
        self.existing
    }

    /// Path of the held folder; valid as long as this lives.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.folder.as_raw_fd()).into()
    }

    /// Path of the name in the held folder; valid as long as this lives.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder().join(&self.name)
    }

    /// Opens what is written directly. The open file is the one that was looked at: what
    /// another user puts under the name meanwhile is not opened.
    ///
    /// # Errors
    /// The system's, and that it came to be another user's.
    pub(super) fn open_stream(&self) -> io::Result<File> {
        let is_link = statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Symlink);
        let follow = if is_link && is_open_file(&self.name) {
            OFlags::empty()
        } else {
            OFlags::NOFOLLOW
        };
        let flags = OFlags::PATH | OFlags::CLOEXEC | follow;
        let stream = openat(&self.folder, &self.name, flags, Mode::empty())?;
        let found = fstat(&stream)?;
        if !is_link
            && FileType::from_raw_mode(found.st_mode) == FileType::Fifo
            && !is_trusted(&found)
        {
            return Err(foreign("a pipe", &found));
        }
        // An open file of this process may be a log: it is added to.
        OpenOptions::new()
            .append(true)
            .custom_flags(libc::O_NOCTTY)
            .open(format!("/proc/self/fd/{}", stream.as_fd().as_raw_fd()))
    }
}

const FOLDER: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Puts a path's components on `left`, the first on top.
fn push_components(left: &mut Vec<OsString>, path: &Path) {
    let components = path
        .components()
        .rev()
        .filter_map(|component| match component {
            Component::CurDir | Component::Prefix(_) => None,
            Component::RootDir => Some(OsString::from("/")),
            component => Some(component.as_os_str().to_owned()),
        });
    left.extend(components);
}

/// Whether only root or the caller can have put it there.
fn is_trusted(found: &Stat) -> bool {
    [0, geteuid().as_raw()].contains(&found.st_uid)
}

/// Whether a link in procfs has the name of a descriptor.
fn is_open_file(name: &OsStr) -> bool {
    name.as_bytes().iter().all(u8::is_ascii_digit)
}

fn foreign(what: &str, found: &Stat) -> io::Error {
    let text = format!(
        "there is {what} of another user, whose ID is {}",
        found.st_uid
    );
    io::Error::other(text)
}
