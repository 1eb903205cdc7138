//! DWARF expressions that compilers and linkers write into call frame information (DWARF 5, section
//! 2.5).

use gimli::{Encoding, EndianSlice, Expression, LittleEndian, Operation, Register};

use crate::arch::{FRAME_POINTER, STACK_POINTER, described_linkage_table};
use crate::rule::{Rule, cfa};

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// Number of operations of the longest known expression.
const LONGEST: usize = 9;

/// Value that a known expression computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Computed {
    /// Register plus an offset.
    Register(Register, i64),
    /// Word at a register plus an offset, plus an addend. Functions that align their stack keep the
    /// previous stack pointer in their frame.
    Word(Register, i64, i64),
    /// CFA in an entry of the procedure linkage table ([`cfa::PLT`]).
    Plt(i32),
}

impl Computed {
    /// Evaluates `expression`; `None` if the expression is unknown.
    pub(crate) fn new(expression: Expression<Slice<'_>>, encoding: Encoding) -> Option<Computed> {
        let mut known = [const { Operation::Nop }; LONGEST];
        let mut length = 0;
        let mut operations = expression.operations(encoding);
        while let Some(operation) = operations.next().ok()? {
            *known.get_mut(length)? = operation;
            length += 1;
        }
        let (first, rest) = known[..length].split_first()?;
        let Operation::RegisterOffset {
            register, offset, ..
        } = *first
        else {
            return None;
        };
        if let [
            Operation::Deref {
                size: 8,
                space: false,
                ..
            },
            addition @ ..,
        ] = rest
        {
            return Some(Computed::Word(register, offset, addend(addition)?));
        }
        if let Some(added) = addend(rest) {
            return Some(Computed::Register(register, offset.checked_add(added)?));
        }
        described_linkage_table(register, offset, rest).map(Computed::Plt)
    }

    /// Returns the rule for a CFA with this value. The rule does not describe the frame pointer
    /// yet.
    pub(crate) fn cfa(self) -> Option<Rule> {
        match self {
            Computed::Register(register, offset) => {
                let offset = i32::try_from(offset).ok()?;
                Some(match register {
                    STACK_POINTER => Rule::at(cfa::STACK_POINTER, offset),
                    FRAME_POINTER => Rule::at(cfa::FRAME_POINTER, offset),
                    Register(n @ 0..16) => Rule::at(cfa::REGISTER + n as u8, offset),
                    _ => return None,
                })
            }
            Computed::Word(register, offset, addend) => {
                let kind = match register {
                    STACK_POINTER => cfa::WORD_AT_STACK_POINTER,
                    FRAME_POINTER => cfa::WORD_AT_FRAME_POINTER,
                    _ => return None,
                };
                let (offset, addend) = (i16::try_from(offset).ok()?, i16::try_from(addend).ok()?);
                Some(Rule::at(kind, Rule::with_halves(offset, addend)))
            }
            Computed::Plt(from) => Some(Rule::at(cfa::PLT, from)),
        }
    }
}

/// Returns the number that the operations add to the value on the stack; 0 if there are no
/// operations.
fn addend(operations: &[Operation<Slice<'_>>]) -> Option<i64> {
    match *operations {
        [] => Some(0),
        [Operation::PlusConstant { value }] => i64::try_from(value).ok(),
        [ref constant, Operation::Plus] => number(constant),
        [ref constant, Operation::Minus] => number(constant)?.checked_neg(),
        _ => None,
    }
}

fn number(operation: &Operation<Slice<'_>>) -> Option<i64> {
    match *operation {
        Operation::UnsignedConstant { value } => i64::try_from(value).ok(),
        Operation::SignedConstant { value } => Some(value),
        _ => None,
    }
}
