//! Helper process that reads memory and files, and the protocol of its socket.
//!
//! A request consists of three words: thread ID, address and length. A request with a descriptor
//! reads that file instead of memory. The answer is the number of bytes, followed by the bytes.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg,
    sendmsg, socketpair,
};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

/// Maximum number of bytes in an answer.
pub(crate) const MAX_BYTES: usize = 64 << 10;
/// Smallest page size of any supported processor, in bytes. The helper reads memory page by page,
/// so that it keeps the bytes before an unreadable page.
pub(crate) const PAGE: usize = 4096;
/// Size of the number before the bytes of an answer, in bytes.
const HEADER: usize = size_of::<u64>();
const REQUEST: usize = 3 * size_of::<u64>();
/// Maximum number of pages that [`MAX_BYTES`] bytes can touch.
const MAX_PAGES: usize = MAX_BYTES / PAGE + 1;

/// Time for which the helper may wait for a CPU without counting as blocked.
const MAX_STARVED: Duration = Duration::from_secs(5);

/// Process that reads on behalf of this process. It ends when its socket is closed.
pub(crate) struct Helper {
    socket: OwnedFd,
    process: Pid,
}

/// Source of the bytes that the helper reads.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    Memory { tid: u32, address: u64 },
    File(BorrowedFd<'a>),
}

impl Helper {
    /// Forks a helper. The helper inherits no descriptor except its socket, and blocks all signals.
    ///
    /// # Errors
    /// The kernel creates no socket or no process.
    pub(crate) fn start() -> io::Result<Helper> {
        let flags = SocketFlags::CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        // SAFETY: a signal set is plain data, which sigfillset() writes and pthread_sigmask()
        // reads. After a fork of a process with several threads, the child may only make system
        // calls. This child does so, and never returns.
        let child = unsafe {
            let mut all = MaybeUninit::uninit();
            let mut before = MaybeUninit::uninit();
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            let child = libc::fork();
            if child == 0 {
                serve(theirs.as_raw_fd());
            }
            let error = io::Error::last_os_error();
            libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut());
            Pid::from_raw(child).filter(|_| child > 0).ok_or(error)?
        };
        Ok(Helper {
            socket: ours,
            process: child,
        })
    }

    /// Reads up to `buffer.len()` bytes, at most [`MAX_BYTES`], and returns the number of bytes.
    /// For memory that cannot be read this number is 0.
    ///
    /// # Errors
    /// `TimedOut` if no answer comes within `deadline`. Any other error means that the helper
    /// ended.
    pub(crate) fn read(
        &self,
        source: Source<'_>,
        buffer: &mut [u8],
        deadline: Duration,
    ) -> io::Result<usize> {
        let length = buffer.len().min(MAX_BYTES);
        self.send(source, length)?;
        self.wait(deadline)?;
        let mut header = [0; HEADER];
        let mut parts = [
            IoSliceMut::new(&mut header),
            IoSliceMut::new(&mut buffer[..length]),
        ];
        let mut none = RecvAncillaryBuffer::default();
        let received = recvmsg(&self.socket, &mut parts, &mut none, RecvFlags::empty())?;
        if received.bytes < HEADER || received.flags.contains(ReturnFlags::TRUNC) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(received.bytes - HEADER)
    }

    fn send(&self, source: Source<'_>, length: usize) -> io::Result<()> {
        let (tid, address, file) = match source {
            Source::Memory { tid, address } => (tid, address, None),
            Source::File(file) => (0, 0, Some(file)),
        };
        let mut request = [0; REQUEST];
        let words = [u64::from(tid), address, length as u64];
        for (bytes, word) in request.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_ne_bytes());
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if let Some(file) = &file {
            ancillary.push(SendAncillaryMessage::ScmRights(std::slice::from_ref(file)));
        }
        let parts = [IoSlice::new(&request)];
        sendmsg(&self.socket, &parts, &mut ancillary, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    fn wait(&self, deadline: Duration) -> io::Result<()> {
        let begun = Instant::now();
        let mut end = begun + deadline;
        let mut sources = [PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::IN)];
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).map_err(|_| io::ErrorKind::InvalidInput)?;
            match poll(&mut sources, Some(&timeout)) {
                // On a busy machine the helper may not have run yet. The target does not cause such
                // a delay.
                Ok(0) if self.is_runnable() && begun.elapsed() < MAX_STARVED => {
                    end = Instant::now() + deadline;
                }
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Ok(_) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns the ID of the process.
    pub(crate) fn pid(&self) -> Pid {
        self.process
    }

    /// Returns whether the helper runs or waits for a CPU (state `R` in proc_pid_stat(5)).
    fn is_runnable(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process));
        stat.is_ok_and(|stat| {
            stat.rsplit_once(") ")
                .is_some_and(|(_, fields)| fields.starts_with('R'))
        })
    }
}

impl Drop for Helper {
    /// Kills the helper. If the helper waits in the kernel, it ends only when its read ends. It is
    /// then a child of the process that adopts it.
    fn drop(&mut self) {
        let _ = kill_process(self.process, Signal::KILL);
        let end = Instant::now() + Duration::from_millis(1);
        while let Ok(None) = waitpid(Some(self.process), WaitOptions::NOHANG)
            && Instant::now() < end
        {
            std::thread::yield_now();
        }
    }
}

/// Answers requests until the socket is closed. This function may only make system calls.
fn serve(socket: i32) -> ! {
    // SAFETY: these are plain system calls. The closed descriptors belong to the parent's copy of
    // this memory, whose code does not run here. Descriptor 0 is the socket from here on.
    let socket = unsafe {
        libc::dup2(socket, 0);
        libc::syscall(libc::SYS_close_range, 1, u32::MAX, 0);
        libc::setsid();
        libc::chdir(c"/".as_ptr());
        BorrowedFd::borrow_raw(0)
    };
    let mut answer = [0_u8; HEADER + MAX_BYTES];
    while let Some((words, file)) = receive(socket) {
        let length = (words[2] as usize).min(MAX_BYTES);
        let (header, bytes) = answer.split_at_mut(HEADER);
        let bytes = &mut bytes[..length];
        let count = match file {
            Some(file) => read_file(file.as_fd(), bytes),
            None => read_memory(words[0], words[1], bytes),
        };
        header.copy_from_slice(&(count as u64).to_ne_bytes());
        let sent = rustix::net::send(socket, &answer[..HEADER + count], SendFlags::NOSIGNAL);
        if sent.is_err() {
            break;
        }
    }
    // SAFETY: `_exit` ends this process, and runs none of the destructors of its parent.
    unsafe { libc::_exit(0) }
}

fn receive(socket: BorrowedFd<'_>) -> Option<([u64; 3], Option<OwnedFd>)> {
    let mut request = [0; REQUEST];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut request)];
    let received = recvmsg(socket, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC).ok()?;
    if received.bytes != REQUEST {
        return None;
    }
    let mut words = [0; 3];
    for (word, bytes) in words.iter_mut().zip(request.as_chunks::<8>().0) {
        *word = u64::from_ne_bytes(*bytes);
    }
    let mut file = None;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(files) = message {
            file = files.last();
        }
    }
    Some((words, file))
}

/// Reads the start of a file. Returns the number of bytes.
fn read_file(file: BorrowedFd<'_>, buffer: &mut [u8]) -> usize {
    let mut count = 0;
    while count < buffer.len() {
        match rustix::io::read(file, &mut buffer[count..]) {
            Ok(read @ 1..) => count += read,
            _ => break,
        }
    }
    count
}

/// Reads memory of thread `tid` up to the first unreadable page. Returns the number of bytes.
fn read_memory(tid: u64, address: u64, buffer: &mut [u8]) -> usize {
    let empty = libc::iovec {
        iov_base: std::ptr::null_mut(),
        iov_len: 0,
    };
    let mut pages = [empty; MAX_PAGES];
    let mut used = 0;
    let mut covered = 0;
    for page in &mut pages {
        let Some(start) = address.checked_add(covered as u64) else {
            break;
        };
        let length = (PAGE - start as usize % PAGE).min(buffer.len() - covered);
        if length == 0 {
            break;
        }
        *page = libc::iovec {
            iov_base: start as *mut libc::c_void,
            iov_len: length,
        };
        covered += length;
        used += 1;
    }
    let local = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: covered,
    };
    let Ok(tid) = i32::try_from(tid) else {
        return 0;
    };
    // SAFETY: `local` is `buffer`. The kernel checks the addresses of the other process.
    let read = unsafe { libc::process_vm_readv(tid, &local, 1, pages.as_ptr(), used, 0) };
    usize::try_from(read).unwrap_or(0)
}
