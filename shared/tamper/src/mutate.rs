//! One change to an input.

use crate::Random;

/// Values at which arithmetic goes wrong.
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
            // Fields of headers are aligned; those of descriptions need not be.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_aligned_word_is_an_edge() {
        let is_last = |edge: &u64| edge.is_multiple_of(8) && edge.checked_add(8).is_none();
        assert!(EDGES.iter().any(is_last));
    }

    #[test]
    fn inputs_are_changed_in_one_place_in_every_way() {
        let seed: Vec<u8> = (0..=255).collect();
        let mut random = Random::new(1);
        let (mut longest, mut bits, mut edges, mut copies, mut fills, mut cuts) =
            (0, 0, 0, 0, 0, 0);
        for _ in 0..10_000 {
            let mut bytes = seed.clone();
            mutate(&mut bytes, &mut random);
            let differs: Vec<usize> = (0..bytes.len())
                .filter(|&at| bytes[at] != seed[at])
                .collect();
            cuts += u64::from(bytes.len() < seed.len());
            let (Some(&first), Some(&last)) = (differs.first(), differs.last()) else {
                continue;
            };
            let changed = &bytes[first..=last];
            longest = longest.max(changed.len());
            let one_bit = (bytes[first] ^ seed[first]).is_power_of_two();
            bits += u64::from(changed.len() == 1 && one_bit);
            let edge = [0xff, 0xff, 0xff, 0x7f];
            edges += u64::from(changed == edge);
            let climbs = changed
                .windows(2)
                .all(|two| two[0].wrapping_add(1) == two[1]);
            copies += u64::from(changed.len() > 8 && climbs);
            let same = changed.iter().all(|byte| *byte == changed[0]);
            fills += u64::from(changed.len() > 8 && same);
        }
        assert_eq!(longest, 64, "most that is copied");
        for (kind, count, least) in [
            ("bits", bits, 1000),
            ("edges", edges, 20),
            ("copies", copies, 500),
            ("fills", fills, 200),
            ("cuts", cuts, 50),
        ] {
            assert!((least..3000).contains(&count), "{count} {kind}");
        }
        let mut nothing = Vec::new();
        mutate(&mut nothing, &mut random);
        assert!(nothing.is_empty());
    }
}
