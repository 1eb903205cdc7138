//! Paths and names of files that threads waited on.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::{AsRawFd, OwnedFd};

use bpf::types::ObjectEvent;
use process::living_folder;
use profile::Resource;
use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, major, minor, openat, readlinkat};

use super::name as last_name;

/// Number of bits of a minor device number in the kernel (MINORBITS of `include/linux/kdev_t.h`).
const MINOR_BITS: u32 = 20;
/// Maximum number of a process's descriptors that are searched for a file.
const MAX_DESCRIPTORS: usize = 4096;
/// Maximum number of bytes that are read of a process's mappings: 512 bytes for each of 65,530
/// mappings, the kernel's default limit.
const MAX_MAPS: u64 = 32 << 20;

/// Descriptor of a file if the program does not know it (`NO_FILE_DESCRIPTOR` of
/// `include/waits/object_event.h`).
const NO_DESCRIPTOR: u32 = u32::MAX;

/// Returns the file on which a thread waited. The result has the file's path if the process still
/// has the file open there. Otherwise it has the last component of the path, which the kernel
/// reported.
pub(super) fn file(event: &ObjectEvent) -> Resource<Box<str>> {
    let kind = FileType::from_raw_mode(event.mode);
    let path = match (event.fd, kind) {
        (NO_DESCRIPTOR, FileType::RegularFile) => mapped_path(event),
        (NO_DESCRIPTOR, FileType::Fifo) => None,
        (NO_DESCRIPTOR, _) => some_path(event),
        (fd, _) => path(event, &fd.to_string()),
    };
    let path = path.map(String::into_boxed_str);
    if kind == FileType::Fifo {
        let unnamed = || format!("pipe:[{}]", event.inode).into();
        return Resource::Pipe(path.unwrap_or_else(unnamed));
    }
    path.map_or_else(
        || Resource::FileNamed(String::from_utf8_lossy(last_name(event)).into()),
        Resource::File,
    )
}

/// Returns a file without an inode of its own, such as an `eventfd`.
pub(super) fn anonymous(event: &ObjectEvent) -> Resource<Box<str>> {
    let name = String::from_utf8_lossy(last_name(event));
    Resource::Anonymous(name.trim_matches(['[', ']']).into())
}

/// Returns the path of a file, from the first descriptor of the process that has the file open.
fn some_path(event: &ObjectEvent) -> Option<String> {
    let folder = std::fs::read_dir(format!("{}/fd", living_folder(event.pid))).ok()?;
    let descriptors = folder.take(MAX_DESCRIPTORS).flatten();
    let mut paths = descriptors.filter_map(|fd| path(event, fd.file_name().to_str()?));
    paths.next()
}

/// Returns the path of a file, from a descriptor of the process.
fn path(event: &ObjectEvent, fd: &str) -> Option<String> {
    let link = format!("{}/fd/{fd}", living_folder(event.pid));
    // O_PATH gives a handle of this file without opening it, so no driver or file server acts on
    // it.
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let file: OwnedFd = openat(CWD, link, flags, Mode::empty()).ok()?;
    if !is_same_file(&fstat(&file).ok()?, event) {
        return None;
    }
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    let path = readlinkat(CWD, link, Vec::new()).ok()?;
    Some(path.to_string_lossy().into_owned())
}

/// Returns the path of a file that the process maps.
fn mapped_path(event: &ObjectEvent) -> Option<String> {
    let maps = File::open(format!("{}/maps", living_folder(event.pid))).ok()?;
    let (major, minor) = device(event);
    // The device and the inode precede the path (proc_pid_maps(5)).
    let place = format!(" {major:02x}:{minor:02x} {} ", event.inode);
    let lines = BufReader::new(maps.take(MAX_MAPS)).split(b'\n');
    let mut paths = lines.map_while(Result::ok).filter_map(|line| {
        let line = String::from_utf8_lossy(&line).into_owned();
        let (_, path) = line.split_once(&place)?;
        Some(path.trim_start().to_owned())
    });
    paths.next()
}

/// Returns the major and the minor number of the device with the event's file.
fn device(event: &ObjectEvent) -> (u32, u32) {
    (
        event.device >> MINOR_BITS,
        event.device & ((1 << MINOR_BITS) - 1),
    )
}

/// Returns whether `found` is the event's file, and not another file that has replaced it.
fn is_same_file(found: &Stat, event: &ObjectEvent) -> bool {
    let found_on = (major(found.st_dev), minor(found.st_dev));
    found.st_ino == event.inode && found_on == device(event)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Returns an event for an open file of this process, as the kernel would report it.
    fn event(file: &impl AsRawFd, stat: &Stat) -> ObjectEvent {
        ObjectEvent {
            pid: std::process::id(),
            fd: file.as_raw_fd() as u32,
            device: major(stat.st_dev) << MINOR_BITS | minor(stat.st_dev),
            inode: stat.st_ino,
            mode: stat.st_mode,
            ..ObjectEvent::default()
        }
    }

    #[test]
    fn a_path_is_that_of_the_file_and_not_of_who_took_its_place() {
        let file = File::open("/proc/self/exe").unwrap();
        let mut event = event(&file, &fstat(&file).unwrap());
        let ours = std::env::current_exe().unwrap();
        let path = ours.to_string_lossy().into();
        assert_eq!(super::file(&event), Resource::File(path));
        event.inode += 1;
        event.name_length = 3;
        event.name[..3].copy_from_slice(b"log");
        let named = Resource::FileNamed("log".into());
        assert_eq!(super::file(&event), named);
        event.fd = u32::MAX - 1;
        assert_eq!(super::file(&event), named);
    }
}
