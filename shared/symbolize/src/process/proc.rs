//! Reads `/proc/PID` of one process through one descriptor.
//!
//! A descriptor of `/proc/PID` stays with its process. After the process has ended, reads fail,
//! even if another process has got the PID.

use std::cell::OnceCell;
use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ::process::ProcessMemory;
use rustix::fs::{CWD, Mode, OFlags};

use crate::process::maps::{self, Entry, Maps};
use crate::process::memory_image::{self, Allowance, Place};
use crate::process::open;

/// Folder of a process in `/proc`.
pub(crate) struct Proc {
    pid: u32,
    users: OnceCell<Vec<u32>>,
    folder: OwnedFd,
    /// Folder of another thread, if the main thread has exited. The main thread's folder then shows
    /// neither mappings nor a root.
    living: Option<OwnedFd>,
}

/// Identity of a process, from its `status`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    /// PID in the innermost PID namespace of the process.
    pub(crate) inner_pid: u32,
    /// User IDs: real, effective, saved, and file system.
    pub(crate) users: Vec<u32>,
}

impl Proc {
    /// Opens the folder of a process. `pid` is its PID in the namespace of this program.
    pub(crate) fn open(pid: u32) -> Result<Self> {
        let folder = open::directory(CWD, format!("/proc/{pid}"))?;
        let living = ::process::living_thread(pid).filter(|tid| *tid != pid);
        let living = living.map(|tid| open::directory(CWD, format!("/proc/{tid}")));
        Ok(Self {
            pid,
            users: OnceCell::new(),
            folder,
            living: living.transpose()?,
        })
    }

    /// Returns the folder of a thread that has not exited.
    fn living(&self) -> BorrowedFd<'_> {
        self.living.as_ref().unwrap_or(&self.folder).as_fd()
    }

    /// Reads the start of a file in the folder.
    fn text(&self, name: &str) -> Result<String> {
        let mut text = Vec::new();
        let file = file(self.folder.as_fd(), name)?;
        file.take(64 << 10).read_to_end(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Returns the start time of the process, in clock ticks since boot. The start time
    /// distinguishes processes with the same PID.
    pub(crate) fn started(&self) -> Result<u64> {
        started(&self.text("stat")?).ok_or_else(|| ErrorKind::InvalidData.into())
    }

    /// Returns the user IDs of the process; none if they cannot be read.
    pub(crate) fn users(&self) -> &[u32] {
        let read = || self.identity().map(|identity| identity.users);
        self.users.get_or_init(|| read().unwrap_or_default())
    }

    /// Returns the identity of the process.
    pub(crate) fn identity(&self) -> Result<Identity> {
        Ok(identity(&self.text("status")?))
    }

    /// Opens the process's root directory.
    pub(crate) fn root(&self) -> Result<OwnedFd> {
        open::directory(self.living(), "root")
    }

    /// Opens the file behind a mapping, even if its path now leads elsewhere.
    ///
    /// # Errors
    /// Any error of opening a file; `NotFound` if only the path can be opened, and leads to another
    /// file now.
    pub(crate) fn mapped(&self, entry: &Entry) -> Result<(File, rustix::fs::Stat)> {
        let link = format!("map_files/{:x}-{:x}", entry.start, entry.end);
        let refused = match open::regular(self.living(), link) {
            Ok(opened) => return Ok(opened),
            Err(error) => error,
        };
        // Only a program with CAP_CHECKPOINT_RESTORE may open map_files. A mapping that was split
        // or joined since then has no such link.
        let path = std::ffi::OsStr::from_bytes(&entry.path);
        let Ok((file, stat)) = self
            .root()
            .and_then(|root| open::regular_within(&root, Path::new(path), true))
        else {
            return Err(refused);
        };
        if (stat.st_dev, stat.st_ino) != (entry.device, entry.inode) {
            return Err(Error::new(ErrorKind::NotFound, "deleted or replaced"));
        }
        Ok((file, stat))
    }

    /// Copies the image of a mapping's file from the memory of the process, within an allowance.
    ///
    /// # Errors
    /// The process has ended, it has no such image, or the image takes too much work.
    pub(crate) fn memory_image(&self, entry: &Entry, allowance: &mut Allowance) -> Result<File> {
        allowance.spend(self.pid, |left| {
            let header = maps::header(file(self.living(), "maps")?, entry)?;
            let place = Place {
                header: header.ok_or(ErrorKind::NotFound)?,
                code: entry.start,
                offset: entry.offset,
            };
            let memory = ProcessMemory::new(self.pid);
            let image = memory_image::copy(place, left, |start, size| memory.bytes(start, size))?;
            // Another process may have got the PID meanwhile. This read then fails.
            self.started().map(|_| image)
        })
    }

    /// Reads the executable mappings.
    ///
    /// # Errors
    /// The process has ended, or this program may not read its mappings.
    pub(crate) fn mappings(&self) -> Result<Maps> {
        let maps = maps::executable(file(self.living(), "maps")?)?;
        maps.ok_or_else(|| Error::new(ErrorKind::NotFound, "the process has exited"))
    }
}

/// Opens a file in a folder.
fn file(folder: BorrowedFd<'_>, name: &str) -> Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(folder, name, flags, Mode::empty())?.into())
}

fn number(text: &str) -> Option<u32> {
    text.parse().ok()
}

/// Parses field 22 of `stat`, the start time. The second field, the name, can contain anything. The
/// fields are therefore counted from its closing parenthesis.
fn started(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// Parses `NSpid` and `Uid` of `status`.
fn identity(status: &str) -> Identity {
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let numbers = line.unwrap_or_default().split_ascii_whitespace();
        numbers.filter_map(number).collect::<Vec<_>>()
    };
    Identity {
        inner_pid: field("NSpid:").last().copied().unwrap_or_default(),
        users: field("Uid:"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_shift_the_fields_of_stat() {
        let stat = "7 (a) R 1) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20";
        assert_eq!(started(stat), Some(4242));
        assert_eq!(started("7 (a"), None);
    }

    #[test]
    fn a_path_serves_where_there_is_no_link_if_it_leads_to_the_same_file() {
        let proc = Proc::open(std::process::id()).unwrap();
        let entries = proc.mappings().unwrap().code;
        let own = rustix::fs::stat("/proc/self/exe").unwrap();
        let is_own = |entry: &&Entry| (entry.device, entry.inode) == (own.st_dev, own.st_ino);
        let entry = |inode| Entry {
            start: 1,
            end: 2,
            inode,
            path: entries.iter().find(is_own).unwrap().path.clone(),
            ..*entries.iter().find(is_own).unwrap()
        };
        let (_, stat) = proc.mapped(&entry(own.st_ino)).unwrap();
        assert_eq!((stat.st_dev, stat.st_ino), (own.st_dev, own.st_ino));
        let replaced = proc.mapped(&entry(own.st_ino + 1)).unwrap_err();
        assert_eq!(replaced.kind(), ErrorKind::NotFound);
    }
}
