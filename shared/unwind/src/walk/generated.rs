//! Code that a runtime generates, such as the compiled methods of a Java virtual machine. No file
//! describes it, so the runtime's own data tell where the frames are.

use crate::arch::GENERAL_REGISTERS;
use crate::walk::End;
use crate::walk::memory::Memory;

/// Registers of a frame in generated code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeFrame {
    /// Address of the code: a return address, or the interrupted instruction.
    pub ip: u64,
    /// Stack pointer.
    pub sp: u64,
    /// Frame pointer.
    pub bp: u64,
    /// True if the code was interrupted at `ip`.
    pub is_exact: bool,
}

/// Result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The caller is generated code, too.
    Inside,
    /// The caller is native code.
    Left,
}

/// Unwinder of the frames in generated code. It keeps the functions of the frames for its caller.
pub trait GeneratedCode {
    /// Returns whether the code at `address` is generated.
    fn contains(&self, address: u64) -> bool;

    /// Steps from `frame`, whose code is generated, to its caller. `leaf` are the general
    /// registers, by DWARF number, if the frame is the leaf of the stack.
    ///
    /// # Errors
    /// The frame's memory cannot be read, or has a value that the runtime does not write.
    fn step(
        &mut self,
        frame: &mut CodeFrame,
        leaf: Option<&[u64; GENERAL_REGISTERS]>,
        stack: &mut dyn Memory,
    ) -> Result<Step, End>;
}

/// No generated code.
#[derive(Clone, Copy, Debug)]
pub struct NoGeneratedCode;

impl GeneratedCode for NoGeneratedCode {
    fn contains(&self, _address: u64) -> bool {
        false
    }

    fn step(
        &mut self,
        _frame: &mut CodeFrame,
        _leaf: Option<&[u64; GENERAL_REGISTERS]>,
        _stack: &mut dyn Memory,
    ) -> Result<Step, End> {
        Err(End::NoRule)
    }
}
