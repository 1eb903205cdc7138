//! The walk along a user stack, the same as in `bpf/include/stacks/unwind.h`: by tables, or by
//! frame pointers through code without a table.

pub(crate) mod frame_pointers;
pub(crate) mod memory;
pub(crate) mod registers;

use crate::arch::{
    self, GENERAL_REGISTERS, RETURN_ADDRESS_AT_CFA, SIGNAL_FRAME_BP, SIGNAL_FRAME_IP,
    SIGNAL_FRAME_LINK, SIGNAL_FRAME_SP, read_stub,
};
use crate::rule::{Rule, cfa, frame_pointer};
use crate::table::Table;
use crate::walk::memory::Memory;
use crate::walk::registers::Registers;

/// Code at an address of a process.
#[derive(Clone, Copy, Debug)]
pub enum Code<'a> {
    /// No known executable mapping.
    Unmapped,
    /// Code without a table, such as a JIT compiler's.
    Bare,
    /// Code of a file.
    Table {
        /// The file's table.
        table: &'a Table,
        /// The address, as a virtual address of the file.
        address: u64,
    },
}

/// The code of a process.
pub trait AddressSpace {
    /// Returns the code at `address`.
    fn code(&self, address: u64) -> Code<'_>;
}

/// Means of getting from one frame to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Tables, and frame pointers through code without a rule.
    Auto,
    /// Tables only.
    Tables,
}

/// Reason for the end of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// The walk reached the first function of the thread.
    Root,
    /// An address is in no known mapping.
    NoMapping,
    /// The memory of the stack could not be read.
    ReadFailed,
    /// The stack has more frames than the caller asked for.
    TooDeep,
    /// Code has no rule, and no frame pointer leads on.
    NoRule,
    /// The code is 32-bit code, whose stacks are not walked.
    Code32Bit,
}

/// Frames that a walk found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    /// Addresses from the leaf (see `leaf_is_exact` of [`walk`]) to the root. Each address after
    /// the leaf is a return address: the call is before it.
    pub addresses: Vec<u64>,
    /// Canonical frame address of each frame, which is the caller's stack pointer. The last frame
    /// may have none.
    pub cfas: Vec<u64>,
    /// Reason for the end.
    pub end: End,
    /// `true` if a frame was found by its frame pointer.
    pub by_frame_pointer: bool,
}

/// Walks from `registers` to the thread's first function, `depth` frames at most.
///
/// `leaf_is_exact` says that the program counter is at the instruction that was interrupted.
/// Otherwise it is where the thread goes on after a system call.
pub fn walk(
    registers: Registers,
    leaf_is_exact: bool,
    mode: Mode,
    space: &impl AddressSpace,
    memory: &mut impl Memory,
    depth: usize,
) -> Walk {
    let mut stepper = Stepper {
        ip: registers.instruction_pointer,
        sp: registers.stack_pointer(),
        bp: registers.frame_pointer(),
        leaf: Some(registers.general),
        link: registers.link(),
        ip_is_exact: leaf_is_exact,
        by_frame_pointer: false,
        mode,
        memory,
    };
    let mut addresses = Vec::new();
    let mut cfas = Vec::new();
    let end = loop {
        if stepper.ip == 0 {
            break End::Root;
        }
        if addresses.len() >= depth {
            break End::TooDeep;
        }
        let exact = stepper.ip_is_exact;
        let leaf = addresses.is_empty();
        // Readers of the addresses subtract one, as from return addresses.
        addresses.push(stepper.ip.wrapping_add(u64::from(exact && !leaf)));
        // A call may be the last instruction of its function.
        let address = stepper.ip.wrapping_sub(u64::from(!exact));
        let rule = match space.code(address) {
            Code::Unmapped => break End::NoMapping,
            Code::Bare => Rule::NONE,
            Code::Table { table, address } => table.rule(address),
        };
        stepper.ip_is_exact = false;
        if let Err(end) = stepper.step(rule) {
            break end;
        }
        stepper.leaf = None;
        cfas.push(stepper.sp);
        if let (true, false, Some(last)) = (stepper.ip_is_exact, leaf, addresses.last_mut()) {
            // Nothing called the trampoline, so there is no call before it.
            *last = address.wrapping_add(2);
        }
    };
    Walk {
        addresses,
        cfas,
        end,
        by_frame_pointer: stepper.by_frame_pointer,
    }
}

struct Stepper<'a, M> {
    ip: u64,
    sp: u64,
    bp: u64,
    /// All registers by DWARF number, which are known at the leaf only.
    leaf: Option<[u64; GENERAL_REGISTERS]>,
    /// The link register, which is known at the leaf and for code that a signal interrupted.
    link: Option<u64>,
    ip_is_exact: bool,
    by_frame_pointer: bool,
    mode: Mode,
    memory: &'a mut M,
}

impl<M: Memory> Stepper<'_, M> {
    fn word(&mut self, address: u64) -> Result<u64, End> {
        self.memory.word(address).ok_or(End::ReadFailed)
    }

    /// Returns a register of the leaf by its DWARF number.
    fn register(&self, number: u16) -> Result<u64, End> {
        self.leaf
            .map(|leaf| leaf[usize::from(number)])
            .ok_or(End::NoRule)
    }

    /// Steps from one frame to its caller's.
    fn step(&mut self, rule: Rule) -> Result<(), End> {
        let offset = i64::from(rule.cfa_offset) as u64;
        // The two offsets of the rules that read a word from memory.
        let word_offset = i64::from(rule.cfa_offset as i16) as u64;
        let addend = i64::from(rule.cfa_offset >> 16) as u64;
        let mut return_address = None;
        let link = self.link.take();
        let cfa = match rule.cfa {
            cfa::NONE => {
                return match self.step_through_stub() {
                    Err(End::NoRule) => self.step_by_frame_pointer(),
                    stepped => stepped,
                };
            }
            cfa::ROOT => return Err(End::Root),
            cfa::SIGNAL_FRAME => return self.leave_signal_frame(self.sp.wrapping_add(offset)),
            cfa::STACK_POINTER => self.sp.wrapping_add(offset),
            cfa::CLONED if self.register(arch::RESULT.0)? == 0 => return Err(End::Root),
            cfa::CLONED => self.sp.wrapping_add(offset),
            cfa::FRAME_POINTER | cfa::SWITCHED_STACK => self.bp.wrapping_add(offset),
            cfa::PLT => arch::cfa_in_linkage_table(self.sp, self.ip, offset),
            cfa::WORD_AT_STACK_POINTER => {
                let word = self.word(self.sp.wrapping_add(word_offset))?;
                word.wrapping_add(addend)
            }
            cfa::WORD_AT_FRAME_POINTER => {
                let word = self.word(self.bp.wrapping_add(word_offset))?;
                word.wrapping_add(addend)
            }
            cfa::LINK_REGISTER => {
                return_address = Some(link.ok_or(End::NoRule)?);
                self.sp.wrapping_add(offset)
            }
            cfa::REGISTER..cfa::RETURN_IN_REGISTER => self
                .register(u16::from(rule.cfa % 16))?
                .wrapping_add(offset),
            cfa::RETURN_IN_REGISTER..cfa::HANDED_OVER => {
                return_address = Some(self.register(u16::from(rule.cfa % 16))?);
                self.sp.wrapping_add(offset)
            }
            _ => return Err(End::NoRule),
        };
        // Each caller's frame is at a higher address. A frame that is not is broken or forged.
        if rule.cfa == cfa::SWITCHED_STACK {
            self.sp = 0;
        }
        if cfa < self.sp || (cfa == self.sp && return_address.is_none()) {
            return Err(End::NoRule);
        }
        let ip = match return_address {
            Some(address) => address,
            None => self.word(cfa.wrapping_add_signed(RETURN_ADDRESS_AT_CFA))?,
        };
        let base = match rule.frame_pointer {
            frame_pointer::AT_FRAME_POINTER => self.bp,
            _ => cfa,
        };
        let saved = base.wrapping_add(i64::from(rule.frame_pointer_offset) as u64);
        self.bp = match rule.frame_pointer {
            // The frame pointer leads nowhere, so a step that needs it fails.
            frame_pointer::LOST => 1,
            // A slot below the stack pointer was popped again.
            frame_pointer::SAME => self.bp,
            _ if saved < self.sp => self.bp,
            _ => self.word(saved)?,
        };
        self.ip = ip;
        self.sp = cfa;
        Ok(())
    }

    /// Steps through a stub to its caller.
    fn step_through_stub(&mut self) -> Result<(), End> {
        let code = self.memory.code(self.ip).ok_or(End::NoRule)?;
        let stub = read_stub(code).ok_or(End::NoRule)?;
        let cfa = self.sp.wrapping_add(stub.cfa_offset);
        self.ip = self.word(cfa.wrapping_add_signed(RETURN_ADDRESS_AT_CFA))?;
        if let Some(offset) = stub.frame_pointer_offset {
            self.bp = self.word(self.sp.wrapping_add(offset))?;
        }
        self.sp = cfa;
        Ok(())
    }

    /// Steps through code without a rule: takes the return address and the caller's frame pointer
    /// from the frame pointer.
    fn step_by_frame_pointer(&mut self) -> Result<(), End> {
        if self.mode == Mode::Tables {
            return Err(End::NoRule);
        }
        // The outermost frame pointer is 0 in code that keeps frame pointers.
        if self.bp == 0 && self.by_frame_pointer {
            return Err(End::Root);
        }
        self.by_frame_pointer = true;
        if self.bp < self.sp || !self.bp.is_multiple_of(8) {
            return Err(End::NoRule);
        }
        let caller = self.memory.word(self.bp).ok_or(End::NoRule)?;
        let address = self.memory.word(self.bp.wrapping_add(8));
        self.ip = address.ok_or(End::NoRule)?;
        self.sp = self.bp.wrapping_add(16);
        self.bp = caller;
        Ok(())
    }

    fn leave_signal_frame(&mut self, registers: u64) -> Result<(), End> {
        let mut read = |offset| self.word(registers.wrapping_add_signed(offset));
        let ip = read(SIGNAL_FRAME_IP)?;
        let sp = read(SIGNAL_FRAME_SP)?;
        let bp = read(SIGNAL_FRAME_BP)?;
        self.link = SIGNAL_FRAME_LINK.map(read).transpose()?;
        (self.ip, self.sp, self.bp) = (ip, sp, bp);
        self.ip_is_exact = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
