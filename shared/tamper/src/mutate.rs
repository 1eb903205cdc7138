//! Changes bytes at random.

use crate::Random;

/// Values at which arithmetic often fails.
const EDGES: [u64; 12] = [
    0,
    1,
    7,
    0x7f,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    i64::MAX as u64,
    u64::MAX - 7,
    u64::MAX,
];

/// Changes `bytes` in one place.
pub(crate) fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    if bytes.is_empty() {
        return;
    }
    let at = random.below(bytes.len());
    match random.below(16) {
        0..6 => bytes[at] = random.next_u64() as u8,
        6..8 => bytes[at] ^= 1 << random.below(8),
        8 => bytes[at] = bytes[at].wrapping_add(1),
        9..12 => {
            let value = EDGES[random.below(EDGES.len())].to_le_bytes();
            let width = 1 << random.below(4);
            // Fields of headers are aligned. Fields of debug information may be unaligned.
            let at = if random.below(2) == 0 {
                at - at % width
            } else {
                at
            };
            let end = (at + width).min(bytes.len());
            bytes[at..end].copy_from_slice(&value[..end - at]);
        }
        12..14 => {
            let from = random.below(bytes.len());
            let size = random.below(64.min(bytes.len() - from.max(at)) + 1);
            bytes.copy_within(from..from + size, at);
        }
        14 => {
            let end = (at + random.below(32)).min(bytes.len());
            bytes[at..end].fill(random.next_u64() as u8);
        }
        _ if random.below(8) == 0 => bytes.truncate(at),
        _ => {}
    }
}
