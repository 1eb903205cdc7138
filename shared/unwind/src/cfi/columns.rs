//! Row of the table that call frame instructions describe (DWARF 5, section 6.4.1). It has only the
//! columns that an unwind needs: the CFA, the frame pointer and the return address.

use gimli::Register;

use crate::arch::{
    FRAME_POINTER, RETURN_ADDRESS, RETURN_ADDRESS_AT_CFA, SIGNAL_FRAME_BP, SIGNAL_FRAME_IP,
    SIGNAL_FRAME_SP, STACK_POINTER,
};
use crate::cfi::expression::Computed;
use crate::rule::{Rule, cfa, frame_pointer};

/// Row that is valid at some address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Columns {
    /// CFA; `None` if the CFA is an unknown expression.
    pub(crate) cfa: Option<Computed>,
    pub(crate) frame_pointer: Saved,
    pub(crate) return_address: Saved,
}

/// Place of the value that a register had in the caller (DWARF 5, section 6.4.1, register rules).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Saved {
    /// The call frame information does not mention the register.
    Unspecified,
    Undefined,
    Same,
    AtCfa(i64),
    InRegister(Register),
    /// In memory, at the address that an expression computes.
    At(Computed),
    /// In another place, which no rule can express.
    Elsewhere,
}

impl Columns {
    /// Columns before the first instruction.
    pub(crate) const EMPTY: Columns = Columns {
        cfa: None,
        frame_pointer: Saved::Unspecified,
        return_address: Saved::Unspecified,
    };

    /// Sets the column of `register`, if an unwind needs this column.
    pub(crate) fn set(&mut self, register: Register, saved: Saved) {
        match register {
            FRAME_POINTER => self.frame_pointer = saved,
            RETURN_ADDRESS => self.return_address = saved,
            _ => {}
        }
    }

    pub(crate) fn get(&self, register: Register) -> Saved {
        match register {
            FRAME_POINTER => self.frame_pointer,
            RETURN_ADDRESS => self.return_address,
            _ => Saved::Unspecified,
        }
    }

    /// Returns the rule for these columns. `signal` says that the kernel built the frame.
    pub(crate) fn rule(&self, signal: bool) -> Rule {
        if let Some(rule) = self.signal_frame().filter(|_| signal) {
            return rule;
        }
        let cfa = self.cfa.and_then(Computed::cfa);
        match (self.return_address, cfa) {
            (Saved::Undefined, _) => Rule::ROOT,
            // A caller's frame is above the return address that its call pushed. Otherwise there
            // was no call. musl's clone has a negative offset on the new stack.
            (Saved::AtCfa(RETURN_ADDRESS_AT_CFA), Some(rule))
                if rule.cfa == cfa::STACK_POINTER
                    && i64::from(rule.cfa_offset) < -RETURN_ADDRESS_AT_CFA =>
            {
                Rule::ROOT
            }
            (Saved::AtCfa(RETURN_ADDRESS_AT_CFA), Some(rule)) => self.with_frame_pointer(rule),
            (Saved::InRegister(Register(n @ 0..16)), Some(rule))
                if rule.cfa == cfa::STACK_POINTER =>
            {
                let kind = cfa::RETURN_IN_REGISTER + n as u8;
                self.with_frame_pointer(Rule::at(kind, rule.cfa_offset))
            }
            _ => Rule::NONE,
        }
    }

    /// Returns the rule of a frame that the kernel built for a signal handler, if every column
    /// refers to its register in the same `struct sigcontext`.
    fn signal_frame(&self) -> Option<Rule> {
        let Saved::At(Computed::Register(STACK_POINTER, ip)) = self.return_address else {
            return None;
        };
        let base = ip.checked_sub(SIGNAL_FRAME_IP)?;
        let sp = base.checked_add(SIGNAL_FRAME_SP)?;
        let bp = Computed::Register(STACK_POINTER, base.checked_add(SIGNAL_FRAME_BP)?);
        let agree = self.cfa == Some(Computed::Word(STACK_POINTER, sp, 0))
            && self.frame_pointer == Saved::At(bp);
        let offset = i32::try_from(base).ok()?;
        agree.then_some(Rule::at(cfa::SIGNAL_FRAME, offset))
    }

    fn with_frame_pointer(&self, rule: Rule) -> Rule {
        let (kind, offset) = match self.frame_pointer {
            Saved::Unspecified | Saved::Undefined | Saved::Same => (frame_pointer::SAME, 0),
            Saved::AtCfa(offset) => (frame_pointer::AT_CFA, offset),
            Saved::At(Computed::Register(FRAME_POINTER, offset)) => {
                (frame_pointer::AT_FRAME_POINTER, offset)
            }
            _ => (frame_pointer::LOST, 0),
        };
        match i16::try_from(offset) {
            Ok(offset) => Rule {
                frame_pointer: kind,
                frame_pointer_offset: offset,
                ..rule
            },
            Err(_) => Rule {
                frame_pointer: frame_pointer::LOST,
                ..rule
            },
        }
    }
}
