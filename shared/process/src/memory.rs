//! Memory of one process, which callers read in words or in pieces.

use std::cell::Cell;

use crate::helper::{MAX_BYTES, PAGE};
use crate::reads::read_memory;
use crate::threads::living_thread;

/// Number of bytes that are read at once for a word. Most stacks fit into one such piece.
const PIECE: usize = 4 * PAGE;

/// Memory of a running process. The memory can change during a read. The caller must know that the
/// thread in question does not run.
pub struct ProcessMemory {
    pid: u32,
    /// ID of a thread of the process that was alive at the last read.
    tid: Cell<u32>,
    /// Address of `piece`, the start of a page; `u64::MAX` before the first read.
    start: u64,
    piece: Vec<u8>,
}

impl ProcessMemory {
    /// Returns the memory of process `pid`. If the process does not exist, no memory is readable.
    #[must_use]
    pub fn new(pid: u32) -> ProcessMemory {
        ProcessMemory {
            pid,
            tid: Cell::new(pid),
            start: u64::MAX,
            piece: Vec::new(),
        }
    }

    /// Drops the cached piece, because the memory may have changed.
    pub fn forget(&mut self) {
        self.start = u64::MAX;
        self.piece.clear();
    }

    /// Reads up to `most` bytes at `start`, and stops at the first unreadable page.
    #[must_use]
    pub fn bytes(&self, start: u64, most: usize) -> Vec<u8> {
        let mut bytes = vec![0; most];
        let mut count = 0;
        for piece in bytes.chunks_mut(MAX_BYTES) {
            let Some(address) = start.checked_add(count as u64) else {
                break;
            };
            let read = read(self.pid, &self.tid, address, piece);
            count += read;
            if read < piece.len() {
                break;
            }
        }
        bytes.truncate(count);
        bytes
    }

    /// Returns the 64-bit word at `address`; `None` if it cannot be read.
    pub fn word(&mut self, address: u64) -> Option<u64> {
        let page = address & !(PAGE as u64 - 1);
        self.cached_word(address).or_else(|| {
            if self.start == page {
                return None;
            }
            self.start = page;
            self.piece.resize(PIECE, 0);
            let count = read(self.pid, &self.tid, page, &mut self.piece);
            self.piece.truncate(count);
            self.cached_word(address)
        })
    }

    fn cached_word(&self, address: u64) -> Option<u64> {
        let offset = usize::try_from(address.checked_sub(self.start)?).ok()?;
        let bytes = self.piece.get(offset..offset.checked_add(8)?)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    }
}

/// Reads through the thread `tid`. If that thread has ended and has no memory, reads through
/// another thread and stores that thread's ID.
fn read(pid: u32, tid: &Cell<u32>, address: u64, buffer: &mut [u8]) -> usize {
    let count = read_memory(pid, tid.get(), address, buffer);
    if count > 0 || buffer.is_empty() {
        return count;
    }
    match living_thread(pid) {
        Some(living) if living != tid.get() => {
            tid.set(living);
            read_memory(pid, living, address, buffer)
        }
        _ => 0,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn bytes_end_where_the_memory_does() {
        let words = vec![7_u8; 40 * PAGE];
        let memory = ProcessMemory::new(std::process::id());
        let start = words.as_ptr() as u64;
        assert_eq!(memory.bytes(start, words.len()), words);
        assert_eq!(memory.bytes(start + 1, 10), words[1..11]);
        for from_end in [0, 1, 3, PAGE as u64 - 1, PAGE as u64] {
            assert_eq!(memory.bytes(u64::MAX - from_end, 100), []);
        }
        assert_eq!(ProcessMemory::new(0).bytes(start, 8), []);
    }

    #[test]
    fn words_end_where_the_memory_does() {
        let words: Vec<u64> = (0..4 * PAGE as u64).collect();
        let mut memory = ProcessMemory::new(std::process::id());
        for index in [0, 1, 511, 512, 2047, 2048, 2049, words.len() - 1] {
            let address = words[index..].as_ptr() as u64;
            assert_eq!(memory.word(address), Some(words[index]), "{index}");
        }
        assert_eq!(memory.word(0), None);
        assert_eq!(memory.word(u64::MAX - 3), None);
        assert_eq!(ProcessMemory::new(0).word(4096), None);
    }
}
