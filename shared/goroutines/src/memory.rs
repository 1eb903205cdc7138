//! Reads of many small ranges of memory in few requests.

use process::ProcessMemory;

/// Maximum number of bytes of one request.
const PIECE: u64 = 64 << 10;
/// Maximum number of bytes between two ranges that one request reads. A request costs about as much
/// time as reading these bytes.
const GAP: u64 = 4 << 10;

/// Memory of a process.
pub(crate) trait Memory {
    /// Reads up to `most` bytes at `start`, and stops at the first unreadable page.
    fn bytes(&self, start: u64, most: usize) -> Vec<u8>;

    /// Reads the 64-bit word at `address`.
    fn word(&self, address: u64) -> Option<u64> {
        word_at(&self.bytes(address, 8), 0)
    }
}

impl Memory for ProcessMemory {
    fn bytes(&self, start: u64, most: usize) -> Vec<u8> {
        ProcessMemory::bytes(self, start, most)
    }
}

/// Returns the 64-bit word at this offset.
pub(crate) fn word_at(bytes: &[u8], offset: usize) -> Option<u64> {
    let word = bytes.get(offset..offset.checked_add(8)?)?;
    Some(u64::from_le_bytes(word.try_into().ok()?))
}

/// Reads ranges, given by start and length, and calls `visit` with the number of each range and its
/// bytes. Ranges that cannot be read as a whole are left out.
pub(crate) fn read_ranges(
    memory: &impl Memory,
    ranges: &[(u64, usize)],
    mut visit: impl FnMut(usize, &[u8]),
) {
    let end_of = |range: usize| ranges[range].0.saturating_add(ranges[range].1 as u64);
    let mut order: Vec<usize> = (0..ranges.len()).collect();
    order.sort_unstable_by_key(|range| ranges[*range].0);
    let mut rest = &order[..];
    while let Some(&first) = rest.first() {
        let start = ranges[first].0;
        let mut end = end_of(first);
        let joined = rest[1..].iter().take_while(|&&range| {
            let is_near = ranges[range].0 <= end.saturating_add(GAP);
            let joins = is_near && end_of(range) - start <= PIECE;
            if joins {
                end = end.max(end_of(range));
            }
            joins
        });
        let (piece, others) = rest.split_at(1 + joined.count());
        rest = others;
        let bytes = memory.bytes(start, (end - start) as usize);
        for &range in piece {
            let (address, length) = ranges[range];
            let offset = (address - start) as usize;
            if let Some(bytes) = bytes.get(offset..offset + length) {
                visit(range, bytes);
            } else {
                // A page between the ranges may be unreadable.
                let bytes = memory.bytes(address, length);
                if bytes.len() == length {
                    visit(range, &bytes);
                }
            }
        }
    }
}
