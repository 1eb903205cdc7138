//! Access to a process for languages that name functions.

use std::any::Any;
use std::collections::HashMap;

use process::{Process, ProcessMemory};

/// Process whose functions are named.
pub struct Reader<'a> {
    /// Process.
    pub process: Process,
    /// Memory of the process.
    pub memory: ProcessMemory,
    /// Memory that was already read.
    pub pieces: MemoryPieces,
    /// Data that functions share.
    pub shared: &'a mut Shared,
}

/// Data that the functions of each process share, such as the lines of a source file.
#[derive(Default)]
pub struct Shared(HashMap<Process, Box<dyn Any + Send>>);

impl Shared {
    /// Returns the data of a process. Replaces data of another type, since only one language of a
    /// process shares data.
    pub(crate) fn of<T: Any + Default + Send>(&mut self, process: Process) -> &mut T {
        let data = self.0.entry(process).or_insert_with(|| Box::<T>::default());
        if !data.is::<T>() {
            *data = Box::<T>::default();
        }
        // The type was checked above.
        #[expect(clippy::unwrap_used)]
        data.downcast_mut().unwrap()
    }

    /// Removes the data of processes that have ended.
    pub fn forget(&mut self, has_ended: impl Fn(Process) -> bool) {
        self.0.retain(|process, _| !has_ended(*process));
    }
}

/// Size of a piece of memory, in bytes. Reading a byte takes as long as reading a piece.
const PIECE: u64 = 16 << 10;
/// Maximum number of pieces.
const PIECES: usize = 1024;

/// Memory that was read while the frames of one stack were named, by the number of the piece. All
/// objects of these frames are older than the reads.
#[derive(Default)]
pub struct MemoryPieces(HashMap<u64, Vec<u8>>);

impl MemoryPieces {
    /// Forgets all memory, so that it is read again.
    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }

    /// Reads exactly `length` bytes.
    pub(crate) fn bytes(
        &mut self,
        memory: &ProcessMemory,
        address: u64,
        length: usize,
    ) -> Option<Vec<u8>> {
        let (number, offset) = (address / PIECE, (address % PIECE) as usize);
        if offset + length <= PIECE as usize {
            if self.0.len() >= PIECES {
                self.0.clear();
            }
            let read = || memory.bytes(number * PIECE, PIECE as usize);
            let piece = self.0.entry(number).or_insert_with(read);
            if let Some(bytes) = piece.get(offset..offset + length) {
                return Some(bytes.to_vec());
            }
        }
        // A part of the piece is not readable, or the bytes are in two pieces.
        let bytes = memory.bytes(address, length);
        (bytes.len() == length).then_some(bytes)
    }
}
