//! Memory that an unwind reads from.

use process::ProcessMemory;

/// Memory that an unwind reads from.
pub trait Memory {
    /// Returns the 64-bit word at `address`, or `None` if it cannot be read.
    fn word(&mut self, address: u64) -> Option<u64>;
}

impl Memory for ProcessMemory {
    fn word(&mut self, address: u64) -> Option<u64> {
        ProcessMemory::word(self, address)
    }
}
