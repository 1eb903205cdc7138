//! Opens files whose paths targets choose.
//!
//! To open a FIFO waits for its writer, and to open a device may trigger an action. This module
//! therefore opens everything with `O_PATH` first, which does neither. It opens a file for reading
//! only if it is a regular file with contents of its own. Reads of a procfs file may trigger an
//! action, too: a read of `/proc/kmsg` removes messages. A process can mount any such file over one
//! of its own files.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Types of file systems in which the kernel generates the contents of files. The numbers are from
/// `include/uapi/linux/magic.h`, or from the named files of Linux 6.16.
const MADE_UP: [u32; 21] = [
    0x9fa0,      // procfs
    0x6265_6572, // sysfs
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0xcafe_4a11, // bpf
    0x6165_676c, // pstore
    0xf97c_ff8c, // selinuxfs
    0x4341_5d53, // smackfs
    0x5a3c_69f0, // apparmorfs: security/apparmor/apparmorfs.c
    0x6265_6570, // configfs: fs/configfs/mount.c
    0xde5e_81e4, // efivarfs
    0x4249_4e4d, // binfmt_misc
    0x0765_5821, // resctrl
    0x6573_5543, // fusectl: fs/fuse/control.c
    0x6e66_7364, // nfsd: fs/nfsd/nfsctl.c
    0x6759_6969, // rpc_pipefs: net/sunrpc/rpc_pipe.c
    0xabba_1974, // xenfs
    0x9fa1,      // openpromfs
];

/// Opens for reading the file of an `O_PATH` descriptor.
///
/// # Errors
/// The file is not a regular file, the kernel generates its contents, or this process may not read
/// it.
pub(crate) fn reopen(path: &OwnedFd) -> Result<(File, Stat)> {
    let stat = rustix::fs::fstat(path)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Error::new(ErrorKind::InvalidInput, "not a regular file"));
    }
    // The type has 32 bits, in a field that is wider and signed.
    if MADE_UP.contains(&(rustix::fs::fstatfs(path)?.f_type as u32)) {
        let why = "the kernel makes up what is in it";
        return Err(Error::new(ErrorKind::InvalidInput, why));
    }
    // NONBLOCK: if the file has a lease, `open` must not wait for the holder of the lease.
    let file = rustix::fs::open(
        format!("/proc/self/fd/{}", path.as_raw_fd()),
        OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY,
        Mode::empty(),
    )?;
    Ok((File::from(file), stat))
}

/// Opens a regular file. Follows symbolic links.
pub(crate) fn regular(directory: BorrowedFd<'_>, path: impl AsRef<Path>) -> Result<(File, Stat)> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    reopen(&rustix::fs::openat(
        directory,
        path.as_ref(),
        flags,
        Mode::empty(),
    )?)
}

/// Opens a regular file by its path in the mount namespace of this program.
pub(crate) fn regular_here(path: impl AsRef<Path>) -> Result<(File, Stat)> {
    regular(CWD, path)
}

/// Opens a regular file inside `root`. Nothing in `path` can lead outside of `root`.
///
/// If `links` is true, follows symbolic links within `root`. Otherwise refuses them.
pub(crate) fn regular_within(root: &OwnedFd, path: &Path, links: bool) -> Result<(File, Stat)> {
    let mut resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    if !links {
        resolve |= ResolveFlags::NO_SYMLINKS;
    }
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    reopen(&rustix::fs::openat2(
        root,
        path,
        flags,
        Mode::empty(),
        resolve,
    )?)
}

/// Opens a directory from which files can be opened.
pub(crate) fn directory(parent: BorrowedFd<'_>, path: impl AsRef<Path>) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(
        parent,
        path.as_ref(),
        flags,
        Mode::empty(),
    )?)
}

/// Raises the limit of open files to its maximum. Returns how many files this crate may open, which
/// is half of the limit. The rest of the program always has the other half.
pub(crate) fn allow_open_files() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let current = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    // Without a limit, the kernel's `fs.nr_open` still applies.
    let current = current.unwrap_or(u64::MAX).min(1 << 20);
    (current / 2) as usize
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::AsFd;

    #[test]
    fn what_is_no_file_with_bytes_of_its_own_is_refused_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        rustix::fs::mkfifoat(CWD, &fifo, Mode::RWXU).unwrap();
        let made_up = ["/proc/version", "/sys/kernel/notes"].map(Path::new);
        for path in [fifo.as_path(), Path::new("/dev/zero"), folder.path()]
            .into_iter()
            .chain(made_up)
        {
            assert_eq!(
                regular_here(path).unwrap_err().kind(),
                ErrorKind::InvalidInput
            );
        }
        let root = directory(CWD, folder.path()).unwrap();
        let refused = regular_within(&root, Path::new("fifo"), false).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        let refused = directory(CWD, &fifo).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::NotADirectory);
    }

    #[test]
    fn what_is_opened_does_not_wait_and_is_not_handed_on() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (file, _) = regular_here(file.path()).unwrap();
        let folder = directory(CWD, "/").unwrap();
        for fd in [file.as_fd(), folder.as_fd()] {
            let flags = rustix::io::fcntl_getfd(fd).unwrap();
            assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
        }
        let flags = rustix::fs::fcntl_getfl(&file).unwrap();
        assert!(flags.contains(OFlags::NONBLOCK));
    }

    #[test]
    fn nothing_leads_out_of_the_root() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("root")).unwrap();
        std::fs::write(folder.path().join("secret"), "outside").unwrap();
        std::fs::write(folder.path().join("root/secret"), "inside").unwrap();
        std::os::unix::fs::symlink("../../secret", folder.path().join("root/link")).unwrap();
        let root = directory(CWD, folder.path().join("root")).unwrap();
        for (path, links) in [
            ("../secret", false),
            ("link", true),
            ("/../../secret", false),
        ] {
            let mut text = String::new();
            let (mut file, _) = regular_within(&root, Path::new(path), links).unwrap();
            file.read_to_string(&mut text).unwrap();
            assert_eq!(text, "inside");
        }
        assert!(regular_within(&root, Path::new("link"), false).is_err());
    }
}
