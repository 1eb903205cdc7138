//! Memory of a process that an unwind reads.

use process::ProcessMemory;

/// Memory of a process that an unwind reads.
pub trait Memory {
    /// Returns the 64-bit word at `address`; `None` if it cannot be read.
    fn word(&mut self, address: u64) -> Option<u64>;

    /// Returns the 16 bytes of code at `address` as a little-endian number; `None` if they cannot
    /// be read.
    fn code(&mut self, address: u64) -> Option<u128> {
        let low = self.word(address)?;
        let high = self.word(address.checked_add(8)?)?;
        Some(u128::from(high) << 64 | u128::from(low))
    }
}

impl Memory for ProcessMemory {
    fn word(&mut self, address: u64) -> Option<u64> {
        ProcessMemory::word(self, address)
    }
}
