//! Handles of processes. Unlike a PID, a handle never refers to a later process.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Handle of a process. `poll` reports it readable once the last thread of the process has ended.
#[derive(Debug)]
pub struct ProcessHandle(OwnedFd);

impl ProcessHandle {
    /// Opens a handle of the process with this ID.
    ///
    /// # Errors
    /// No process has this ID, or the kernel refuses to open a handle.
    pub fn open(pid: u32) -> io::Result<ProcessHandle> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))?;
        Ok(ProcessHandle(pidfd_open(pid, PidfdFlags::empty())?))
    }

    /// Returns whether the last thread of the process has ended. The process may still be a zombie.
    pub fn has_ended(&self) -> bool {
        let mut handles = [PollFd::from_borrowed_fd(self.as_fd(), PollFlags::IN)];
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        poll(&mut handles, Some(&at_once)).is_ok_and(|ready| ready > 0)
    }
}

impl AsFd for ProcessHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
