//! Made-up memory for tests.

use std::cell::RefCell;
use std::collections::HashMap;

use unwind::Memory;

use crate::language::Pieces;

/// Memory whose first page is unreadable. All other bytes are 0 unless a test wrote to them.
#[derive(Clone, Default)]
pub(crate) struct Made(HashMap<u64, u8>);

impl Made {
    pub(crate) fn write(&mut self, address: u64, bytes: &[u8]) {
        let at = (address..).zip(bytes.iter().copied());
        self.0.extend(at);
    }

    pub(crate) fn put(&mut self, address: u64, word: u64) {
        self.write(address, &word.to_le_bytes());
    }

    fn byte(&self, address: u64) -> Option<u8> {
        (address >= 4096).then(|| self.0.get(&address).copied().unwrap_or(0))
    }
}

impl Memory for Made {
    fn word(&mut self, address: u64) -> Option<u64> {
        assert_eq!(address % 8, 0);
        let mut bytes = [0; 8];
        for (byte, at) in bytes.iter_mut().zip(address..) {
            *byte = self.byte(at)?;
        }
        Some(u64::from_le_bytes(bytes))
    }
}

impl Pieces for Made {
    fn bytes(&self, start: u64, most: usize) -> Vec<u8> {
        let at = (0..most as u64).map_while(|at| self.byte(start.checked_add(at)?));
        at.collect()
    }
}

/// Memory with random values everywhere. Most values are small, or addresses in this memory.
pub(crate) struct Wild(RefCell<tamper::Random>);

impl Wild {
    pub(crate) fn new(seed: u64) -> Wild {
        Wild(RefCell::new(tamper::Random::new(seed)))
    }

    fn any(&self, address: u64) -> Option<u64> {
        let any = self.0.borrow_mut().next_u64();
        match any % 64 {
            0 => None,
            1..4 => Some(any),
            4..10 => Some(any >> 56),
            10..14 => Some(0),
            14..20 => Some(u64::from(any as u8 % 8) | any >> 40 << 32),
            _ => Some(address.wrapping_add((any % 4096) & !7)),
        }
    }
}

impl Memory for Wild {
    fn word(&mut self, address: u64) -> Option<u64> {
        self.any(address)
    }
}

impl Pieces for Wild {
    fn bytes(&self, start: u64, most: usize) -> Vec<u8> {
        assert!(most <= 16 << 20, "{most}");
        let words = most.div_ceil(8).min(512) as u64;
        let words = (0..words).map_while(|at| self.any(start.wrapping_add(8 * at)));
        let mut bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        bytes.truncate(most);
        bytes
    }
}
