//! Registers that a walk starts from.

use crate::arch::{FRAME_POINTER, GENERAL_REGISTERS, LINK_REGISTER, STACK_POINTER};

/// User registers of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Registers {
    /// Program counter.
    pub instruction_pointer: u64,
    /// General registers by their DWARF numbers.
    pub general: [u64; GENERAL_REGISTERS],
}

impl Registers {
    /// Returns the registers that nearly every walk needs; the others are 0.
    pub fn new(instruction_pointer: u64, stack_pointer: u64, frame_pointer: u64) -> Registers {
        let mut general = [0; GENERAL_REGISTERS];
        general[usize::from(STACK_POINTER.0)] = stack_pointer;
        general[usize::from(FRAME_POINTER.0)] = frame_pointer;
        Registers {
            instruction_pointer,
            general,
        }
    }

    /// Returns the address of the top of the stack.
    pub fn stack_pointer(&self) -> u64 {
        self.general[usize::from(STACK_POINTER.0)]
    }

    /// Returns the return address of the last call, on architectures that keep it in a register.
    pub(crate) fn link(&self) -> Option<u64> {
        LINK_REGISTER.map(|link| self.general[usize::from(link.0)])
    }

    /// Returns the address of the frame of the function that last set one up.
    pub fn frame_pointer(&self) -> u64 {
        self.general[usize::from(FRAME_POINTER.0)]
    }
}
