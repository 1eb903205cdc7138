//! The place that a path leads to: an open folder, and a name in it.
//!
//! Root may write to a folder such as `/tmp`, where other users also write. A link that another
//! user left there must not choose the file that is replaced, even if `fs.protected_symlinks` is 0.
//! So [`Place::find`] follows only links that root or the caller owns.

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

/// Maximum links that are followed: `MAXSYMLINKS` of the kernel's include/linux/namei.h.
const MAX_LINKS: usize = 40;

/// A name in an open folder. The place stays in that folder even if the path later leads elsewhere.
#[derive(Debug)]
pub struct Place {
    folder: OwnedFd,
    name: OsString,
    existing: Option<Existing>,
}

/// Kind of the file that already has the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Existing {
    Folder,
    /// A regular file, with its mode if the caller owns it.
    File {
        mode: Option<u32>,
    },
    /// A pipe, a device, or an open file of this process, which is written directly.
    Stream,
}

impl Place {
    /// Finds the place of `path`, and follows links that root or the caller owns.
    ///
    /// # Errors
    /// A folder on the way is missing, another user owns a link on the way, or there are more
    /// than 40 links.
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
            if links > MAX_LINKS {
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

    pub(super) fn existing_file(&self) -> Option<Existing> {
        self.existing
    }

    /// Returns whether a file has the name.
    pub(crate) fn exists(&self) -> bool {
        self.existing.is_some()
    }

    /// Checks that root or the caller owns the folder.
    ///
    /// # Errors
    /// Another user owns the folder.
    pub(crate) fn check_folder(&self) -> io::Result<()> {
        let found = fstat(&self.folder)?;
        if is_trusted(&found) {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "a folder on the way belongs to another user, whose ID is {}",
            found.st_uid
        )))
    }

    /// Opens the folder that has the name.
    ///
    /// # Errors
    /// The name is not that of a folder, or the folder cannot be opened.
    pub(crate) fn open_folder(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.folder, &self.name, flags, Mode::empty())?)
    }

    /// Returns a path of the open folder, valid as long as `self` lives.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.folder.as_raw_fd()).into()
    }

    /// Returns a path of the name in the open folder, valid as long as `self` lives.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder().join(&self.name)
    }

    /// Opens a file that is written directly. The function gets a descriptor of the file with
    /// O_PATH, checks the file, and opens it by the descriptor. So the function never opens a file
    /// that another user puts under the name in between.
    ///
    /// # Errors
    /// The file cannot be opened, or has become a pipe of another user.
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
        // An open file of this process may be a log, so data is appended.
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

/// Pushes a path's components on `left`, the first component on top.
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

/// Returns whether root or the caller owns the file, so that no other user can have put it there.
fn is_trusted(found: &Stat) -> bool {
    [0, geteuid().as_raw()].contains(&found.st_uid)
}

/// Returns whether the name of a link in procfs is that of a descriptor.
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
