//! Line protocol over a socket to a controlling parent.
//!
//! The tool sends `ready` once it is attached. The parent sends `start NS` and `stop NS`, in ns of
//! CLOCK_MONOTONIC. The tool sends `open` once the BPF programs have the window's start. It sends
//! `first NS` when the first awaited target appears, and `gone` when no target is left, or
//! `triggered TEXT` when a wait set off a trigger. It sends `debuginfod TEXT` if it fetched debug
//! files, or could not. Its last line has the losses.

use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, RawFd};
use std::os::unix::net::UnixStream;

use anyhow::{Context, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use rustix::io::{Errno, FdFlags, fcntl_setfd, read, retry_on_intr};

use crate::error::{Ending, usage};

/// Maximum bytes of a line; all lines of the protocol are much shorter.
const LONGEST_LINE: usize = 256;

/// A line from the parent; times are in ns of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The window starts at this time.
    Start(u64),
    /// The window stops at this time. A later order replaces an earlier one.
    Stop(u64),
}

/// The tool's end of the socket to the controlling parent.
#[derive(Debug)]
pub(crate) struct Control {
    stream: UnixStream,
    unread: Vec<u8>,
}

impl Control {
    /// Takes ownership of a socket that the parent left open.
    ///
    /// # Errors
    /// A usage error if `fd` is not an open socket above stderr.
    pub(crate) fn from_raw(fd: RawFd) -> anyhow::Result<Control> {
        let refuse = || {
            usage(format!(
                "--control-fd {fd}: not an open socket numbered 3 or higher; leave the flag out, only wallclock passes it"
            ))
        };
        if fd < 3 {
            return Err(refuse());
        }
        // SAFETY: the borrow ends before this function returns. A number that is not open only
        // gives EBADF.
        let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
        let status = rustix::fs::fstat(borrowed).map_err(|_| refuse())?;
        if FileType::from_raw_mode(status.st_mode) != FileType::Socket {
            return Err(refuse());
        }
        fcntl_setfd(borrowed, FdFlags::CLOEXEC)?;
        // SAFETY: the descriptor is open, and the parent passed it for this process to own. No
        // other code of this process uses it.
        let stream = unsafe { UnixStream::from_raw_fd(fd) };
        Ok(Control {
            stream,
            unread: Vec::new(),
        })
    }

    pub(crate) fn send(&mut self, line: &str) -> anyhow::Result<()> {
        self.stream
            .write_all(format!("{line}\n").as_bytes())
            .map_err(|_| Ending::Orphaned.into())
    }

    /// Waits for the next order and returns it.
    pub(crate) fn wait(&mut self) -> anyhow::Result<Order> {
        loop {
            if let Some(order) = self.next()? {
                return Ok(order);
            }
            self.receive()?;
        }
    }

    /// Returns the next order if it has already arrived.
    pub(crate) fn poll(&mut self) -> anyhow::Result<Option<Order>> {
        loop {
            if let Some(order) = self.next()? {
                return Ok(Some(order));
            }
            if !is_readable(self.stream.as_fd())? {
                return Ok(None);
            }
            self.receive()?;
        }
    }

    fn receive(&mut self) -> anyhow::Result<()> {
        let mut bytes = [0; LONGEST_LINE];
        match retry_on_intr(|| read(&self.stream, &mut bytes)) {
            Ok(0) | Err(_) => Err(Ending::Orphaned.into()),
            Ok(length) => {
                self.unread.extend(&bytes[..length]);
                Ok(())
            }
        }
    }

    fn next(&mut self) -> anyhow::Result<Option<Order>> {
        let Some(end) = self.unread.iter().position(|&byte| byte == b'\n') else {
            if self.unread.len() > LONGEST_LINE {
                bail!("the controlling process sent a line of more than {LONGEST_LINE} bytes");
            }
            return Ok(None);
        };
        let line: Vec<u8> = self.unread.drain(..=end).collect();
        parse(&line[..end]).map(Some)
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

fn parse(line: &[u8]) -> anyhow::Result<Order> {
    let text = String::from_utf8_lossy(line);
    let order = text.split_once(' ').and_then(|(verb, time)| {
        let time = time.parse().ok()?;
        match verb {
            "start" => Some(Order::Start(time)),
            "stop" => Some(Order::Stop(time)),
            _ => None,
        }
    });
    order.with_context(|| {
        format!("the controlling process sent `{text}`; expected `start NS` or `stop NS`")
    })
}

fn is_readable(fd: BorrowedFd<'_>) -> anyhow::Result<bool> {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    match poll(
        &mut fds,
        Some(&Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        }),
    ) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error).context("cannot poll the control socket"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs::File;
    use std::os::fd::{AsRawFd, IntoRawFd};

    use super::*;

    fn pair() -> (UnixStream, Control) {
        let (parent, child) = UnixStream::pair().unwrap();
        (parent, Control::from_raw(child.into_raw_fd()).unwrap())
    }

    #[test]
    fn orders_come_line_by_line_however_they_were_written() {
        let (mut parent, mut control) = pair();
        assert_eq!(control.poll().unwrap(), None);
        parent.write_all(b"start 10\nstop 2").unwrap();
        assert_eq!(control.wait().unwrap(), Order::Start(10));
        assert_eq!(control.poll().unwrap(), None);
        parent.write_all(b"0\nstop 15\n").unwrap();
        assert_eq!(control.poll().unwrap(), Some(Order::Stop(20)));
        assert_eq!(control.poll().unwrap(), Some(Order::Stop(15)));
        assert_eq!(control.poll().unwrap(), None);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            &b"begin 5\n"[..],
            b"start\n",
            b"start -1\n",
            b"\xff\n",
            &[b'x'; 600],
        ] {
            let (mut parent, mut control) = pair();
            parent.write_all(text).unwrap();
            assert!(control.wait().is_err());
        }
    }

    #[test]
    fn only_a_socket_will_do() {
        let file = File::open("/dev/null").unwrap();
        for fd in [-1, 0, 2, 1_000_000, file.as_raw_fd()] {
            let error = Control::from_raw(fd).unwrap_err();
            assert!(
                matches!(error.downcast_ref(), Some(Ending::Usage(_))),
                "{fd}"
            );
        }
    }
}
