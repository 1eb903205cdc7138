//! Reading words of another process's memory.

use std::io::IoSliceMut;

use rustix::process::Pid;

/// The pages that one read may span; the smallest page of any processor.
const PAGE: u64 = 4096;

/// Memory that a walk reads from.
pub trait Memory {
    /// The 64-bit word at `address`, or `None` where there is nothing to read.
    fn word(&mut self, address: u64) -> Option<u64>;
}

/// The memory of a running process. It changes while it is read: whoever uses
/// what was read must know that the thread in question did not run meanwhile.
pub struct ProcessMemory {
    pid: Option<Pid>,
    page: u64,
    bytes: Vec<u8>,
}

impl ProcessMemory {
    /// The memory of process `pid`. A process that does not exist reads as
    /// one without memory.
    pub fn new(pid: u32) -> ProcessMemory {
        ProcessMemory {
            pid: i32::try_from(pid).ok().and_then(Pid::from_raw),
            page: u64::MAX,
            bytes: Vec::new(),
        }
    }

    /// Reads afresh from here on: what was read before may have changed.
    pub fn forget(&mut self) {
        self.page = u64::MAX;
    }

    /// Up to `most` bytes from `start` on: as far as pages can be read.
    pub fn bytes(&self, start: u64, most: usize) -> Vec<u8> {
        let mut bytes = vec![0; most];
        let mut read = 0;
        while let Some(pid) = self.pid
            && read < most
        {
            let Some(from) = start.checked_add(read as u64) else {
                break;
            };
            let length = ((PAGE - from % PAGE) as usize).min(most - read);
            let got = read_remote(pid, from, &mut bytes[read..read + length]);
            read += got;
            if got < length {
                break;
            }
        }
        bytes.truncate(read);
        bytes
    }

    /// Has the page at `page` in `bytes`; empty if it cannot be read.
    fn load(&mut self, page: u64) -> Option<()> {
        if self.page == page {
            return Some(());
        }
        let pid = self.pid?;
        self.page = page;
        self.bytes.resize(PAGE as usize, 0);
        let read = read_remote(pid, page, &mut self.bytes);
        self.bytes.truncate(read);
        Some(())
    }
}

/// Reads into `buffer` what is at `address` in process `pid`; the number of
/// bytes read, 0 on any error.
fn read_remote(pid: Pid, address: u64, buffer: &mut [u8]) -> usize {
    let local = [IoSliceMut::new(buffer)];
    let remote = libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: local[0].len(),
    };
    // SAFETY: IoSliceMut has the layout of iovec and its buffer is writable
    // for its whole length; the remote address is checked by the kernel.
    let read = unsafe {
        libc::process_vm_readv(
            pid.as_raw_nonzero().get(),
            local.as_ptr().cast::<libc::iovec>(),
            1,
            &remote,
            1,
            0,
        )
    };
    usize::try_from(read).unwrap_or(0)
}

impl Memory for ProcessMemory {
    fn word(&mut self, address: u64) -> Option<u64> {
        let page = address & !(PAGE - 1);
        let offset = (address - page) as usize;
        self.load(page)?;
        let bytes = self.bytes.get(offset..offset + 8)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_end_where_the_memory_does() {
        let words = vec![7_u8; 3 * PAGE as usize];
        let memory = ProcessMemory::new(std::process::id());
        let start = words.as_ptr() as u64;
        assert_eq!(memory.bytes(start, words.len()), words);
        assert_eq!(memory.bytes(start + 1, 10), words[1..11]);
        for from_end in [0, 1, 3, PAGE - 1, PAGE] {
            assert_eq!(memory.bytes(u64::MAX - from_end, 100), []);
        }
        assert_eq!(ProcessMemory::new(0).bytes(start, 8), []);
    }

    #[test]
    fn nothing_is_read_where_nothing_is_mapped() {
        let mut memory = ProcessMemory::new(std::process::id());
        assert_eq!(memory.word(0), None);
        assert_eq!(memory.word(u64::MAX - 3), None);
        assert_eq!(ProcessMemory::new(0).word(4096), None);
    }
}
