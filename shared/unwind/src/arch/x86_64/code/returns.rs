//! Finds frames from the next return.
//!
//! A function that returns has undone everything that it did to the stack. The instructions up to
//! the next return therefore show where the caller's frame is. This needs no beginnings of
//! functions, which stripped code lacks.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind,
    Register,
};

use super::state::writes;
use crate::rule::{Rule, cfa, frame_pointer};

/// Maximum number of passes over the code. Each pass follows one more jump backwards.
const PASSES: usize = 8;

/// Alignment of the stack pointer at each call, in bytes (System V ABI for x86-64, section 3.2.2).
const CALL_ALIGNMENT: i32 = 16;

/// Rule of one instruction, as an analysis finds it.
#[derive(Clone, Copy)]
pub(super) struct InstructionRule {
    /// Length of the instruction, in bytes.
    pub(super) length: u8,
    pub(super) rule: Rule,
}

/// Place of the caller's frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Frame {
    /// Register from which the CFA is computed: the stack pointer or the frame pointer.
    base: Base,
    /// Distance from `base` to the CFA, in bytes.
    offset: i32,
    /// Distance from the caller's saved frame pointer to the CFA, in bytes; `None` if the register
    /// still has the caller's value.
    saved: Option<i32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    StackPointer,
    FramePointer,
}

/// Knowledge of the frame before an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Nothing,
    Frame(Frame),
    /// Two ways lead to returns, and their frames disagree.
    Conflict,
}

/// Frame at the first instruction of a function, and at its return.
const ENTRY: Frame = Frame {
    base: Base::StackPointer,
    offset: 8,
    saved: None,
};

/// Returns the rule of the instruction at each offset of `code`, which begins at `address`. The
/// rule is `None` where no instruction begins, and for instructions that reach no return.
pub(super) fn trace_returns(code: &[u8], address: u64) -> Vec<Option<InstructionRule>> {
    let decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let mut sweep = Sweep {
        address,
        instructions: decoder.into_iter().collect(),
        index: vec![0; code.len()],
        known: Vec::new(),
        factory: InstructionInfoFactory::new(),
    };
    sweep.known.resize(sweep.instructions.len(), Known::Nothing);
    for (instruction, number) in sweep.instructions.iter().zip(1..) {
        let offset = sweep.offset(instruction);
        if let Some(index) = sweep.index.get_mut(offset) {
            *index = number;
        }
    }
    let mut passes = PASSES;
    while sweep.pass() && passes > 0 {
        passes -= 1;
    }
    sweep.rules()
}

/// Instructions of a piece of code, decoded in sequence.
struct Sweep {
    address: u64,
    instructions: Vec<Instruction>,
    /// Index into `instructions` plus 1, by offset; 0 where no instruction begins.
    index: Vec<u32>,
    /// Knowledge before each instruction, by the instruction's index.
    known: Vec<Known>,
    factory: InstructionInfoFactory,
}

impl Sweep {
    /// Visits all instructions from last to first. Returns whether the knowledge before an
    /// instruction changed.
    fn pass(&mut self) -> bool {
        let mut is_more = false;
        let mut next = Known::Nothing;
        for (at, instruction) in self.instructions.iter().enumerate().rev() {
            next = match instruction.flow_control() {
                FlowControl::Return => Known::Frame(ENTRY),
                FlowControl::UnconditionalBranch => self.at_target(instruction),
                FlowControl::ConditionalBranch => self.at_target(instruction).or(next),
                FlowControl::Call | FlowControl::IndirectCall
                    if instruction.mnemonic() == Mnemonic::Call =>
                {
                    next.before_call()
                }
                // iced counts system calls as calls.
                FlowControl::Call | FlowControl::Next => {
                    next.before(instruction, &mut self.factory)
                }
                _ => Known::Nothing,
            };
            is_more |= self.known[at] != next;
            self.known[at] = next;
        }
        is_more
    }

    fn offset(&self, instruction: &Instruction) -> usize {
        usize::try_from(instruction.ip().wrapping_sub(self.address)).unwrap_or(usize::MAX)
    }

    /// Returns the knowledge before the target of a jump.
    fn at_target(&self, jump: &Instruction) -> Known {
        if jump.op0_kind() != OpKind::NearBranch64 {
            return Known::Nothing;
        }
        let offset = usize::try_from(jump.near_branch64().wrapping_sub(self.address));
        match offset.ok().and_then(|offset| self.index.get(offset)) {
            // The jump leaves this code, so it is a tail call.
            None => Known::Frame(ENTRY),
            Some(0) => Known::Nothing,
            Some(&number) => self.known[number as usize - 1],
        }
    }

    /// Returns the rule at each offset.
    fn rules(self) -> Vec<Option<InstructionRule>> {
        let mut rules = vec![None; self.index.len()];
        // No thread runs the padding after a jump or a return.
        let mut is_run = false;
        for (instruction, known) in self.instructions.iter().zip(&self.known) {
            let is_padding = instruction.mnemonic() == Mnemonic::Nop && !is_run;
            is_run = match instruction.flow_control() {
                FlowControl::Return
                | FlowControl::UnconditionalBranch
                | FlowControl::IndirectBranch => false,
                _ => !is_padding,
            };
            let rule = match known {
                Known::Frame(frame) if !is_padding => frame.rule(),
                _ => None,
            };
            let length = instruction.len() as u8;
            if let Some(slot) = rules.get_mut(self.offset(instruction)) {
                *slot = rule.map(|rule| InstructionRule { length, rule });
            }
        }
        rules
    }
}

impl Known {
    /// Combines the knowledge at the target of a jump with `next`, the knowledge after the jump.
    fn or(self, next: Known) -> Known {
        match (self, next) {
            (Known::Nothing, one) | (one, Known::Nothing) => one,
            (one, other) if one == other => one,
            _ => Known::Conflict,
        }
    }

    /// Returns the knowledge before a call. If the call never returns, the code after it may belong
    /// to another function. At the first instruction of that function, the stack pointer does not
    /// have the alignment of a call.
    fn before_call(self) -> Known {
        match self {
            Known::Frame(frame)
                if frame.base == Base::StackPointer && frame.offset % CALL_ALIGNMENT != 0 =>
            {
                Known::Nothing
            }
            _ => self,
        }
    }

    /// Returns the knowledge before `instruction`, from the knowledge after it. The next
    /// instruction follows `instruction`.
    fn before(self, instruction: &Instruction, factory: &mut InstructionInfoFactory) -> Known {
        let Known::Frame(frame) = self else {
            return self;
        };
        frame
            .before(instruction, factory)
            .map_or(Known::Nothing, Known::Frame)
    }
}

impl Frame {
    fn rule(self) -> Option<Rule> {
        let base = match self.base {
            Base::StackPointer => cfa::STACK_POINTER,
            Base::FramePointer => cfa::FRAME_POINTER,
        };
        let mut rule = Rule::at(base, self.offset);
        if let Some(saved) = self.saved {
            rule.frame_pointer = frame_pointer::AT_CFA;
            rule.frame_pointer_offset = i16::try_from(-i64::from(saved)).ok()?;
        }
        // No caller's frame is below the stack pointer.
        (self.base == Base::FramePointer || self.offset >= 8).then_some(rule)
    }

    /// Returns the frame before `instruction`, from the frame after it.
    fn before(
        self,
        instruction: &Instruction,
        factory: &mut InstructionInfoFactory,
    ) -> Option<Frame> {
        let first = instruction.op0_register();
        let on_stack = self.base == Base::StackPointer;
        match instruction.mnemonic() {
            Mnemonic::Hlt => None,
            Mnemonic::Leave if on_stack && self.saved.is_none() => {
                let offset = self.offset.checked_add(8)?;
                Some(Frame {
                    base: Base::FramePointer,
                    offset,
                    saved: Some(offset),
                })
            }
            Mnemonic::Leave | Mnemonic::Enter => None,
            Mnemonic::Push if on_stack => {
                let saves = first == Register::RBP && self.saved == Some(self.offset);
                self.shift(-i64::from(
                    instruction.stack_pointer_increment().unsigned_abs(),
                ))
                .map(|frame| Frame {
                    saved: frame.saved.filter(|_| !saves),
                    ..frame
                })
            }
            Mnemonic::Pop if first == Register::RBP => match (on_stack, self.saved) {
                (true, None) => {
                    let frame = self.shift(8)?;
                    Some(Frame {
                        saved: Some(frame.offset),
                        ..frame
                    })
                }
                (true, Some(_)) => self.shift(8),
                (false, _) => None,
            },
            Mnemonic::Mov
                if first == Register::RSP && instruction.op1_register() == Register::RBP =>
            {
                Some(Frame {
                    base: Base::FramePointer,
                    ..self
                })
                .filter(|_| on_stack)
                .or(Some(self))
            }
            Mnemonic::Mov
                if first == Register::RBP && instruction.op1_register() == Register::RSP =>
            {
                match (on_stack, self.saved) {
                    (true, Some(_)) => Some(self),
                    (true, None) => None,
                    (false, _) => Some(Frame {
                        base: Base::StackPointer,
                        ..self
                    }),
                }
            }
            // This instruction restores the caller's frame pointer.
            Mnemonic::Mov if first == Register::RBP && on_stack && self.saved.is_none() => {
                Some(Frame {
                    saved: Some(self.slot(instruction)?),
                    ..self
                })
            }
            // This instruction saves the caller's frame pointer.
            Mnemonic::Mov
                if instruction.op1_register() == Register::RBP
                    && self.saved.is_some()
                    && self.slot(instruction) == self.saved =>
            {
                Some(Frame {
                    saved: None,
                    ..self
                })
            }
            Mnemonic::Lea if first == Register::RSP => {
                let displacement = displacement(instruction)?;
                match instruction.memory_base() {
                    _ if !on_stack => Some(self),
                    Register::RSP => self.shift(displacement),
                    Register::RBP => Some(Frame {
                        base: Base::FramePointer,
                        ..self.shift(displacement)?
                    }),
                    _ => None,
                }
            }
            Mnemonic::Lea if first == Register::RBP && !on_stack => {
                let displacement = displacement(instruction)?;
                match instruction.memory_base() {
                    Register::RBP => self.shift(displacement),
                    Register::RSP => Some(Frame {
                        base: Base::StackPointer,
                        ..self.shift(displacement)?
                    }),
                    _ => None,
                }
            }
            Mnemonic::Add | Mnemonic::Sub if first == self.register() => {
                let addend = match instruction.op1_kind() {
                    OpKind::Immediate8to64 | OpKind::Immediate32to64 => {
                        instruction.immediate(1) as i64
                    }
                    _ => return None,
                };
                let adds = instruction.mnemonic() == Mnemonic::Add;
                self.shift(if adds { addend } else { addend.checked_neg()? })
            }
            _ => {
                let step = instruction.stack_pointer_increment();
                let info = factory.info(instruction);
                // After this instruction, the register has the caller's frame pointer.
                if writes(info, Register::RBP) && (!on_stack || self.saved.is_none()) {
                    return None;
                }
                if on_stack && step != 0 {
                    self.shift(step.into())
                } else if on_stack && writes(info, Register::RSP) {
                    None
                } else {
                    Some(self)
                }
            }
        }
    }

    fn register(self) -> Register {
        match self.base {
            Base::StackPointer => Register::RSP,
            Base::FramePointer => Register::RBP,
        }
    }

    /// Returns the frame for a base that is `bytes` lower.
    fn shift(self, bytes: i64) -> Option<Frame> {
        let offset = i32::try_from(i64::from(self.offset).checked_add(bytes)?).ok()?;
        Some(Frame { offset, ..self })
    }

    /// Returns the distance from the memory operand of `instruction` to the CFA, in bytes.
    fn slot(self, instruction: &Instruction) -> Option<i32> {
        let displacement = displacement(instruction)?;
        (instruction.memory_base() == self.register())
            .then(|| i32::try_from(i64::from(self.offset).checked_sub(displacement)?).ok())?
    }
}

/// Returns the displacement of a memory operand without index register and segment.
fn displacement(instruction: &Instruction) -> Option<i64> {
    let plain = instruction.memory_index() == Register::None
        && instruction.segment_prefix() == Register::None;
    plain.then(|| instruction.memory_displacement64() as i64)
}
