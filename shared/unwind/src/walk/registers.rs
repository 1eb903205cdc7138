//! Registers from which an unwind starts.

use crate::arch::{FRAME_POINTER, GENERAL_REGISTERS, LINK_REGISTER, STACK_POINTER};

/// User registers of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Registers {
    /// Program counter.
    pub instruction_pointer: u64,
    /// General registers, by DWARF number.
    pub general: [u64; GENERAL_REGISTERS],
}

impl Registers {
    /// Makes registers from the three that nearly every unwind needs. The others are 0.
    pub fn new(instruction_pointer: u64, stack_pointer: u64, frame_pointer: u64) -> Registers {
        let mut general = [0; GENERAL_REGISTERS];
        general[usize::from(STACK_POINTER.0)] = stack_pointer;
        general[usize::from(FRAME_POINTER.0)] = frame_pointer;
        Registers {
            instruction_pointer,
            general,
        }
    }

    /// Returns the stack pointer, which is the lowest address in use on the stack.
    pub fn stack_pointer(&self) -> u64 {
        self.general[usize::from(STACK_POINTER.0)]
    }

    /// Returns the return address of the last call, if the architecture keeps it in a register.
    pub(crate) fn link(&self) -> Option<u64> {
        LINK_REGISTER.map(|link| self.general[usize::from(link.0)])
    }

    /// Returns the frame pointer, which is the address of the frame of the function that set it
    /// last.
    pub fn frame_pointer(&self) -> u64 {
        self.general[usize::from(FRAME_POINTER.0)]
    }
}
