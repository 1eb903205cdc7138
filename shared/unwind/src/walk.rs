//! Unwinds a user stack, like `bpf/include/stacks/unwind.h`: with tables, or with frame pointers
//! through code without a table.

pub(crate) mod frame_pointers;
pub(crate) mod generated;
pub(crate) mod memory;
pub(crate) mod registers;

use crate::arch::{
    self, GENERAL_REGISTERS, RETURN_ADDRESS_AT_CFA, SIGNAL_FRAME_BP, SIGNAL_FRAME_IP,
    SIGNAL_FRAME_LINK, SIGNAL_FRAME_SP, read_stub,
};
use crate::rule::{Rule, cfa, frame_pointer};
use crate::table::Table;
use crate::walk::generated::{CodeFrame, GeneratedCode, NoGeneratedCode, Step};
use crate::walk::memory::Memory;
use crate::walk::registers::Registers;

/// Code at an address of a process.
#[derive(Clone, Copy, Debug)]
pub enum Code<'a> {
    /// No executable mapping is known at the address.
    Unmapped,
    /// The code has no table. It may come from a JIT compiler.
    Bare,
    /// The code belongs to a file with a table.
    Table {
        /// Table of the file.
        table: &'a Table,
        /// The address, as a virtual address of the file.
        address: u64,
    },
}

/// Code of a process, by address.
pub trait AddressSpace {
    /// Returns the code at `address`.
    fn code(&self, address: u64) -> Code<'_>;
}

/// Ways to step from a frame to its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Tables, and frame pointers through code without a rule.
    Auto,
    /// Tables only.
    Tables,
}

/// Reason why an unwind ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// The unwind reached the first function of the thread.
    Root,
    /// An address is outside of all known mappings.
    NoMapping,
    /// The memory of the stack could not be read.
    ReadFailed,
    /// The stack has more frames than the caller wants.
    TooDeep,
    /// The code has no rule, and no frame pointer leads to the caller.
    NoRule,
    /// The code is 32-bit code, whose stacks are not unwound.
    Code32Bit,
}

/// Frames that an unwind found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    /// Addresses from leaf to root. Each address after the leaf is a return address, so the call
    /// is before it. `leaf_is_exact` of [`walk`] says what the address of the leaf is.
    pub addresses: Vec<u64>,
    /// Canonical frame address of each frame, which is the caller's stack pointer. It may be
    /// missing for the last frame.
    pub cfas: Vec<u64>,
    /// Reason why the unwind ended.
    pub end: End,
    /// `true` if the unwind found a frame by its frame pointer.
    pub by_frame_pointer: bool,
}

/// Unwinds from `registers` to the thread's first function, but at most `depth` frames.
///
/// If `leaf_is_exact` is true, the program counter is at the interrupted instruction. Otherwise it
/// is where the thread continues after a system call.
pub fn walk(
    registers: Registers,
    leaf_is_exact: bool,
    mode: Mode,
    space: &impl AddressSpace,
    memory: &mut impl Memory,
    depth: usize,
) -> Walk {
    let generated = &mut NoGeneratedCode;
    walk_through(
        registers,
        leaf_is_exact,
        mode,
        space,
        generated,
        memory,
        depth,
    )
}

/// Unwinds like [`walk`], also through code that a runtime generated.
///
/// A stack has one address for all adjacent frames in generated code. It is the address of the
/// frame that native code called.
pub fn walk_through(
    registers: Registers,
    leaf_is_exact: bool,
    mode: Mode,
    space: &impl AddressSpace,
    generated: &mut (impl GeneratedCode + ?Sized),
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
        if generated.contains(stepper.ip) {
            addresses.push(stepper.ip);
            let (address, result) = stepper.step_through(generated);
            if let Some(last) = addresses.last_mut() {
                *last = address;
            }
            cfas.push(stepper.sp);
            match result {
                Ok(()) => continue,
                Err(end) => break end,
            }
        }
        let exact = stepper.ip_is_exact;
        let leaf = addresses.is_empty();
        // Readers subtract 1 from each address, as from return addresses.
        addresses.push(stepper.ip.wrapping_add(u64::from(exact && !leaf)));
        // A call may be the last instruction of its function, so its return address may be outside.
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
            // No call is before the trampoline, because nothing called it.
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
    /// All registers by DWARF number. They are known only at the leaf.
    leaf: Option<[u64; GENERAL_REGISTERS]>,
    /// Link register. It is known at the leaf, and for code that a signal interrupted.
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

    /// Steps through the frames in generated code, up to their native caller. Returns the address
    /// of the last of these frames.
    fn step_through(
        &mut self,
        generated: &mut (impl GeneratedCode + ?Sized),
    ) -> (u64, Result<(), End>) {
        let mut frame = CodeFrame {
            ip: self.ip,
            sp: self.sp,
            bp: self.bp,
            is_exact: self.ip_is_exact,
        };
        let mut leaf = self.leaf.take();
        self.link = None;
        loop {
            let CodeFrame { ip, sp, .. } = frame;
            let was_leaf = leaf.is_some();
            let stepped = generated.step(&mut frame, leaf.take().as_ref(), self.memory);
            let result = match stepped {
                // Each caller's frame is at a higher address, so the loop ends. A leaf may have
                // no frame yet.
                Ok(_) if frame.sp < sp.saturating_add(u64::from(!was_leaf)) => Err(End::NoRule),
                Ok(Step::Inside) => continue,
                Ok(Step::Left) => Ok(()),
                Err(end) => Err(end),
            };
            (self.ip, self.sp, self.bp) = (frame.ip, frame.sp, frame.bp);
            self.ip_is_exact = false;
            if result.is_err() {
                // The frame contains at least its stack pointer.
                self.sp = sp.saturating_add(8);
            }
            return (ip, result);
        }
    }

    /// Returns a register by its DWARF number; an error if the frame is not the leaf.
    fn register(&self, number: u16) -> Result<u64, End> {
        self.leaf
            .map(|leaf| leaf[usize::from(number)])
            .ok_or(End::NoRule)
    }

    /// Steps from a frame to its caller.
    fn step(&mut self, rule: Rule) -> Result<(), End> {
        let offset = i64::from(rule.cfa_offset) as u64;
        // A rule that reads a word from memory packs two offsets.
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
        // Each caller's frame is at a higher address. Otherwise the frame is broken or forged.
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
            // This frame pointer leads nowhere, so a step that needs it fails.
            frame_pointer::LOST => 1,
            // The function has already popped a slot below the stack pointer.
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

    /// Steps through code without a rule. The return address and the caller's frame pointer are at
    /// the frame pointer.
    fn step_by_frame_pointer(&mut self) -> Result<(), End> {
        if self.mode == Mode::Tables {
            return Err(End::NoRule);
        }
        // Code that keeps frame pointers sets the outermost one to 0.
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
