//! What a walk starts from.

/// The user registers of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Registers {
    /// Program counter.
    pub instruction_pointer: u64,
    /// The others by their DWARF numbers (System V ABI for x86-64, figure
    /// 3.36).
    pub general: [u64; 16],
}

/// DWARF number of rbp.
const FRAME_POINTER: usize = 6;
/// DWARF number of rsp.
const STACK_POINTER: usize = 7;

impl Registers {
    /// Those that nearly every walk needs; the others are 0.
    pub fn new(instruction_pointer: u64, stack_pointer: u64, frame_pointer: u64) -> Registers {
        let mut general = [0; 16];
        general[STACK_POINTER] = stack_pointer;
        general[FRAME_POINTER] = frame_pointer;
        Registers {
            instruction_pointer,
            general,
        }
    }

    /// Top of the stack.
    pub fn stack_pointer(&self) -> u64 {
        self.general[STACK_POINTER]
    }

    /// Frame of the function that last set one up.
    pub fn frame_pointer(&self) -> u64 {
        self.general[FRAME_POINTER]
    }
}
