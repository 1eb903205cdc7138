//! State of the frame before an instruction, and how the instruction changes it.

use iced_x86::{
    Instruction, InstructionInfo, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};

use crate::arch::x86_64::registers::SIGNAL_CONTEXT;
use crate::rule::{Rule, cfa, frame_pointer};

/// State of a frame. A place on the stack is a number of bytes below the canonical frame address
/// (CFA). At a function's entry the stack pointer is 8 bytes below the CFA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    /// Place to which the stack pointer points.
    stack: Option<i32>,
    /// Value in the frame pointer's register.
    frame: Frame,
    /// Place of the caller's saved frame pointer.
    saved: Option<i32>,
    /// Place of the return address.
    caller: Caller,
}

/// Value in the frame pointer's register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frame {
    /// The caller's value.
    Caller,
    /// Address on the stack, this many bytes below the CFA.
    Stack(i32),
    /// Any other value.
    Other,
}

/// Place of the return address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    /// On the stack, just below the CFA.
    Stack,
    /// In a register. `vfork` keeps the return address there during the system call.
    Register(Register),
    /// Nowhere. The code has removed the return address, and does not return.
    Nowhere,
    /// In a signal frame, to which the stack pointer points.
    SignalFrame,
    /// In an unknown place.
    Unknown,
}

impl State {
    /// State at the entry of a function.
    pub(super) const ENTRY: State = State {
        stack: Some(8),
        frame: Frame::Caller,
        saved: None,
        caller: Caller::Stack,
    };
    /// State in the stub to which a signal handler returns.
    pub(super) const SIGNAL_RETURN: State = State {
        caller: Caller::SignalFrame,
        ..State::UNKNOWN
    };
    /// State about which nothing is known.
    pub(super) const UNKNOWN: State = State {
        stack: None,
        frame: Frame::Other,
        saved: None,
        caller: Caller::Unknown,
    };

    /// Returns the unwind rule for this state.
    pub(super) fn rule(&self) -> Rule {
        let mut rule = match (self.caller, self.stack, self.frame) {
            (Caller::Nowhere, ..) => return Rule::ROOT,
            (Caller::SignalFrame, ..) => return Rule::at(cfa::SIGNAL_FRAME, SIGNAL_CONTEXT),
            (Caller::Register(register), Some(offset), _) => {
                Rule::at(cfa::RETURN_IN_REGISTER + dwarf_number(register), offset)
            }
            (Caller::Stack, Some(offset), _) => Rule::at(cfa::STACK_POINTER, offset),
            (Caller::Stack, None, Frame::Stack(offset)) => Rule::at(cfa::FRAME_POINTER, offset),
            _ => return Rule::NONE,
        };
        let saved = self.saved.map(|saved| i16::try_from(-i64::from(saved)));
        (rule.frame_pointer, rule.frame_pointer_offset) = match (saved, self.frame) {
            (Some(Ok(offset)), _) => (frame_pointer::AT_CFA, offset),
            (_, Frame::Caller) => (frame_pointer::SAME, 0),
            _ => (frame_pointer::LOST, 0),
        };
        rule
    }

    /// Returns the state that is known if one of the two states is true.
    pub(super) fn or(&self, other: &State) -> State {
        State {
            stack: self.stack.filter(|_| self.stack == other.stack),
            frame: if self.frame == other.frame {
                self.frame
            } else {
                Frame::Other
            },
            saved: self.saved.filter(|_| self.saved == other.saved),
            caller: if self.caller == other.caller {
                self.caller
            } else {
                Caller::Unknown
            },
        }
    }

    /// Returns the state that is known if one of the two states is true. The two may differ only in
    /// the stack pointer, and the frame pointer must be able to replace it.
    pub(super) fn with_frame_pointer(&self, other: &State) -> Option<State> {
        let either = State {
            stack: None,
            ..*self
        };
        let same = either
            == State {
                stack: None,
                ..*other
            };
        (same && matches!(self.frame, Frame::Stack(_))).then_some(either)
    }

    /// Returns whether code can return in this state: the return address is on top of the stack, or
    /// may be.
    pub(super) fn may_return(&self) -> bool {
        matches!(
            (self.stack, self.caller),
            (None | Some(8), _) | (_, Caller::Unknown)
        )
    }

    /// Returns whether code can only return in this state: the stack and the frame pointer are as
    /// at the entry.
    pub(super) fn must_return(&self) -> bool {
        (self.stack, self.caller) == (Some(8), Caller::Stack) && self.frame == Frame::Caller
    }

    /// Returns whether no return follows, because a signal handler returned to this code or a
    /// thread starts here.
    pub(super) fn has_no_return(&self) -> bool {
        matches!(self.caller, Caller::SignalFrame | Caller::Nowhere)
    }

    /// Returns the state at a call. Code that has removed its return address from the stack, and
    /// then calls, does not return. A thread starts there.
    pub(super) fn calling(mut self) -> State {
        if let Caller::Register(_) = self.caller {
            self.caller = Caller::Nowhere;
        }
        self
    }

    /// Returns the state after a call to the next instruction. Code makes such a call to read its
    /// own address from the stack.
    pub(super) fn pushed(mut self) -> State {
        self.move_stack(self.below(self.stack, -8));
        self
    }

    /// Returns the state after `instruction`, which must not be a call.
    pub(super) fn after(
        mut self,
        instruction: &Instruction,
        factory: &mut InstructionInfoFactory,
    ) -> State {
        let before = self;
        let first = instruction.op0_register();
        match instruction.mnemonic() {
            Mnemonic::Leave => {
                self.stack = before.place(Register::RBP, 0);
                self.pop(Register::RBP);
            }
            Mnemonic::Enter if instruction.immediate8_2nd() == 0 => {
                self.push(Register::RBP);
                self.frame = self.stack.map_or(Frame::Other, Frame::Stack);
                self.move_stack(self.below(self.stack, -i64::from(instruction.immediate16())));
            }
            Mnemonic::Push if first.is_gpr64() => self.push(first),
            Mnemonic::Pop if first.is_gpr64() => self.pop(first),
            // The function moves its return address to another place (sigsetjmp).
            Mnemonic::Pop if before.stack == Some(8) => self = State::UNKNOWN,
            Mnemonic::Mov if instruction.op1_register() == Register::RBP => {
                if first == Register::RSP {
                    self.move_stack(before.place(Register::RBP, 0));
                } else if before.frame == Frame::Caller && before.saved.is_none() {
                    self.saved = before.memory(instruction);
                }
            }
            Mnemonic::Mov if first == Register::RBP => {
                let slot = before.memory(instruction);
                self.frame = if slot.is_some() && slot == before.saved {
                    Frame::Caller
                } else {
                    before
                        .place(instruction.op1_register(), 0)
                        .map_or(Frame::Other, Frame::Stack)
                };
            }
            Mnemonic::Lea | Mnemonic::Add | Mnemonic::Sub if first == Register::RSP => {
                self.move_stack(before.sum(instruction));
            }
            Mnemonic::Lea | Mnemonic::Add | Mnemonic::Sub if first == Register::RBP => {
                self.frame = before.sum(instruction).map_or(Frame::Other, Frame::Stack);
            }
            _ => {
                let info = factory.info(instruction);
                let step = instruction.stack_pointer_increment();
                if step != 0 {
                    self.move_stack(before.below(before.stack, step.into()));
                } else if writes(info, Register::RSP) {
                    self.stack = None;
                }
                if writes(info, Register::RBP) {
                    self.frame = Frame::Other;
                }
            }
        }
        if let Caller::Register(register) = before.caller
            && self.caller == before.caller
            && writes(factory.info(instruction), register)
        {
            self.caller = Caller::Unknown;
        }
        self
    }

    fn push(&mut self, register: Register) {
        self.move_stack(self.below(self.stack, -8));
        if register == Register::RBP && self.frame == Frame::Caller && self.saved.is_none() {
            self.saved = self.stack;
        }
        if self.caller == Caller::Register(register) && self.stack == Some(8) {
            self.caller = Caller::Stack;
        }
    }

    fn pop(&mut self, register: Register) {
        let slot = self.stack;
        if slot == Some(8) && self.caller == Caller::Stack {
            // Code that has also given up the frame pointer does not return.
            self.caller = match (self.frame, self.saved) {
                (Frame::Other, None) => Caller::Nowhere,
                _ => Caller::Register(register),
            };
        }
        if register == Register::RBP {
            let own = slot.is_some() && slot == self.saved;
            self.frame = if own { Frame::Caller } else { Frame::Other };
        }
        match register {
            Register::RSP => self.stack = None,
            _ => self.move_stack(self.below(slot, 8)),
        }
    }

    /// Moves the stack pointer to a place. The content of the slots below it is lost.
    fn move_stack(&mut self, to: Option<i32>) {
        self.stack = to;
        let Some(to) = to else { return };
        if self.saved.is_some_and(|saved| saved > to) {
            self.saved = None;
        }
        if to <= 0 && self.caller == Caller::Stack || to < 0 {
            self.caller = Caller::Nowhere;
        }
    }

    /// Returns the place with the address `register` + `offset`.
    fn place(&self, register: Register, offset: i64) -> Option<i32> {
        match (register, self.frame) {
            (Register::RSP, _) => self.below(self.stack, offset),
            (Register::RBP, Frame::Stack(place)) => self.below(Some(place), offset),
            _ => None,
        }
    }

    fn below(&self, place: Option<i32>, offset: i64) -> Option<i32> {
        i32::try_from(i64::from(place?).checked_sub(offset)?).ok()
    }

    /// Returns the place of the memory operand of `instruction`. An instruction without a memory
    /// operand has no base register, and so no place.
    fn memory(&self, instruction: &Instruction) -> Option<i32> {
        let plain = instruction.memory_index() == Register::None
            && instruction.segment_prefix() == Register::None;
        plain.then(|| {
            let displacement = instruction.memory_displacement64() as i64;
            self.place(instruction.memory_base(), displacement)
        })?
    }

    /// Returns the place with the address that `lea`, `add` or `sub` computes.
    fn sum(&self, instruction: &Instruction) -> Option<i32> {
        if instruction.mnemonic() == Mnemonic::Lea {
            return self.memory(instruction);
        }
        let addend = match instruction.op1_kind() {
            OpKind::Immediate8to64 | OpKind::Immediate32to64 => instruction.immediate(1) as i64,
            _ => return None,
        };
        let sign = if instruction.mnemonic() == Mnemonic::Sub {
            -1
        } else {
            1
        };
        self.place(instruction.op0_register(), sign * addend)
    }
}

/// Returns the DWARF number of a general register. DWARF numbers the registers in an order of its
/// own.
fn dwarf_number(register: Register) -> u8 {
    match register.full_register() {
        Register::RAX => 0,
        Register::RDX => 1,
        Register::RCX => 2,
        Register::RBX => 3,
        Register::RSI => 4,
        Register::RDI => 5,
        Register::RBP => 6,
        Register::RSP => 7,
        other => (other as usize).wrapping_sub(Register::RAX as usize) as u8 & 15,
    }
}

/// Returns whether an instruction changes any part of `register`.
pub(super) fn writes(info: &InstructionInfo, register: Register) -> bool {
    info.used_registers().iter().any(|used| {
        used.register().full_register() == register
            && !matches!(used.access(), OpAccess::Read | OpAccess::CondRead)
    })
}
