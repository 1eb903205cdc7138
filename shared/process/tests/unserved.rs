//! Reads memory that never answers: pages of a `userfaultfd` without a server. The memory of such a
//! process is not read again, so this test runs in a process of its own.
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::{Command, id};
use std::time::{Duration, Instant};

use process::{ProcessMemory, count_unanswered, read_command_line};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

const LENGTH: usize = 1 << 16;

#[test]
fn memory_that_never_answers_costs_one_deadline() {
    let ours = vec![7_u8; LENGTH];
    let readable = ours.as_ptr() as u64;
    let mut memory = ProcessMemory::new(id());
    assert_eq!(memory.bytes(readable, LENGTH), ours);

    let (_descriptor, start) = map_unserved();
    let begun = Instant::now();
    assert_eq!(memory.bytes(start, LENGTH), []);
    assert_eq!(memory.word(start + 8), None);
    assert_eq!(memory.bytes(readable, LENGTH), []);
    let command_line = File::open("/proc/self/cmdline").unwrap();
    let refused = read_command_line(id(), &command_line).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::TimedOut);
    assert!(begun.elapsed() < Duration::from_millis(400));
    assert_eq!(count_unanswered(), 1);

    // The next helper can read other processes.
    let mut other = Command::new("sleep").arg("60").spawn().unwrap();
    let file = File::open(format!("/proc/{}/cmdline", other.id())).unwrap();
    while std::fs::read_to_string(format!("/proc/{}/comm", other.id())).unwrap() != "sleep\n" {}
    let words = read_command_line(other.id(), &file);
    other.kill().unwrap();
    other.wait().unwrap();
    assert_eq!(words.unwrap(), b"sleep\x0060\0");
}

/// Maps memory whose pages do not arrive before the descriptor is closed.
fn map_unserved() -> (OwnedFd, u64) {
    #[repr(C)]
    struct Api(u64, u64, u64);
    #[repr(C)]
    struct Register(u64, u64, u64, u64);
    // Numbers and layouts of linux/userfaultfd.h.
    const UFFDIO_API: libc::Ioctl = 0xc018_aa3f_u32 as libc::Ioctl;
    const UFFDIO_REGISTER: libc::Ioctl = 0xc020_aa00_u32 as libc::Ioctl;
    const UFFD_API: u64 = 0xaa;
    const MISSING: u64 = 1;
    // SAFETY: the mapping is new, and nothing in this process touches it.
    unsafe {
        let descriptor = libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC) as i32;
        assert!(descriptor >= 0, "{}", io::Error::last_os_error());
        let descriptor = OwnedFd::from_raw_fd(descriptor);
        let mut api = Api(UFFD_API, 0, 0);
        assert_eq!(libc::ioctl(descriptor.as_raw_fd(), UFFDIO_API, &mut api), 0);
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        let start = mmap_anonymous(std::ptr::null_mut(), LENGTH, protection, flags).unwrap();
        let mut range = Register(start as u64, LENGTH as u64, MISSING, 0);
        let outcome = libc::ioctl(descriptor.as_raw_fd(), UFFDIO_REGISTER, &mut range);
        assert_eq!(outcome, 0, "{}", io::Error::last_os_error());
        (descriptor, start as u64)
    }
}
