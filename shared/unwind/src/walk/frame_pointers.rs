//! Unwinds by frame pointers. A frame has the caller's frame pointer, and the return address one
//! word above it.

use crate::walk::memory::Memory;
use crate::walk::registers::Registers;

/// Returns the addresses from leaf to root, at most `depth`. The first address is the program
/// counter, and the others are return addresses.
///
/// Each caller's frame is at a higher address. If a frame pointer is lower, the chain is broken or
/// forged, and the unwind ends.
pub fn walk_frame_pointers(
    registers: Registers,
    memory: &mut impl Memory,
    depth: usize,
) -> Vec<u64> {
    let mut addresses = vec![registers.instruction_pointer];
    let mut frame = registers.frame_pointer();
    let mut below = registers.stack_pointer();
    while addresses.len() < depth && frame >= below && frame.is_multiple_of(8) {
        let Some(return_slot) = frame.checked_add(8) else {
            break;
        };
        let (Some(caller), Some(address)) = (memory.word(frame), memory.word(return_slot)) else {
            break;
        };
        if address == 0 {
            break;
        }
        addresses.push(address);
        below = return_slot;
        frame = caller;
    }
    addresses.truncate(depth);
    addresses
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    impl Memory for HashMap<u64, u64> {
        fn word(&mut self, address: u64) -> Option<u64> {
            self.get(&address).copied()
        }
    }

    fn registers(stack_pointer: u64, frame_pointer: u64) -> Registers {
        Registers::new(0x1000, stack_pointer, frame_pointer)
    }

    #[test]
    fn ends_at_the_depth_and_at_a_chain_that_turns_back() {
        let mut circle = HashMap::from([(0x80, 0x80), (0x88, 0x2000)]);
        let walked = walk_frame_pointers(registers(0x70, 0x80), &mut circle, 127);
        assert_eq!(walked, [0x1000, 0x2000]);
        assert_eq!(
            walk_frame_pointers(registers(0x70, 0x80), &mut circle, 1),
            [0x1000]
        );
    }

    #[test]
    fn a_frame_pointer_used_for_data_is_not_followed() {
        let mut memory = HashMap::from([(0x10, 0), (0x18, 0x2000)]);
        assert_eq!(
            walk_frame_pointers(registers(0x70, 0x10), &mut memory, 127),
            [0x1000]
        );
        assert_eq!(
            walk_frame_pointers(registers(0x70, 0x81), &mut memory, 127),
            [0x1000]
        );
        assert_eq!(
            walk_frame_pointers(registers(0x70, u64::MAX - 7), &mut memory, 127),
            [0x1000]
        );
    }
}
