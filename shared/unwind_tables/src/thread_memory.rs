//! Memory of a thread that is off the CPU, with its original return addresses.

use bpf::types::ReplacedReturn;
use process::ProcessMemory;
use unwind::Memory;

/// Memory of a thread's process, with the return addresses that the thread's stack had before
/// uretprobes replaced them.
pub struct ThreadMemory<'a> {
    /// Memory of the process.
    pub process: &'a mut ProcessMemory,
    /// Return addresses that were replaced. An entry with a slot of 0 is unused.
    pub replaced: &'a [ReplacedReturn],
}

impl ThreadMemory<'_> {
    /// Reads up to `most` bytes at `start`.
    pub fn bytes(&self, start: u64, most: usize) -> Vec<u8> {
        let mut bytes = self.process.bytes(start, most);
        for replaced in self.replaced.iter().filter(|replaced| replaced.slot != 0) {
            let offset = usize::try_from(replaced.slot.wrapping_sub(start));
            let word = offset
                .ok()
                .and_then(|offset| bytes.get_mut(offset..)?.first_chunk_mut());
            if let Some(word) = word {
                *word = replaced.original.to_ne_bytes();
            }
        }
        bytes
    }
}

impl Memory for ThreadMemory<'_> {
    fn word(&mut self, address: u64) -> Option<u64> {
        let mut replaced = self.replaced.iter();
        match replaced.find(|replaced| replaced.slot == address && address != 0) {
            Some(replaced) => Some(replaced.original),
            None => self.process.word(address),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn replaced_words_read_as_they_were() {
        let words = [1_u64, 2, 3];
        let start = words.as_ptr() as u64;
        let replaced = [
            ReplacedReturn {
                slot: start + 8,
                original: 7,
            },
            ReplacedReturn::default(),
        ];
        let mut memory = ThreadMemory {
            process: &mut ProcessMemory::new(std::process::id()),
            replaced: &replaced,
        };
        let read = [0, 8, 16].map(|offset| memory.word(start + offset));
        assert_eq!(read, [Some(1), Some(7), Some(3)]);
        let bytes = memory.bytes(start, 24);
        assert_eq!(bytes, [1_u64, 7, 3].map(u64::to_ne_bytes).concat());
        // The read range contains only half of the replaced word.
        assert_eq!(memory.bytes(start, 12).len(), 12);
        assert_eq!(memory.word(0), None);
    }
}
