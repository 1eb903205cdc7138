//! Runs call frame instructions (DWARF 5, section 6.4.2).

use gimli::{
    CallFrameInstruction, CommonInformationEntry, EndianSlice, LittleEndian, UnwindExpression,
    UnwindSection,
};

use crate::cfi::columns::{Columns, Saved};
use crate::cfi::expression::Computed;

/// Maximum depth of nested `DW_CFA_remember_state`. Compilers do not nest it.
const REMEMBERED_LIMIT: usize = 32;

type Slice<'a> = EndianSlice<'a, LittleEndian>;
type Common<'a> = CommonInformationEntry<Slice<'a>>;

/// State of the instructions of one entry.
pub(crate) struct Program {
    /// Columns after the instructions that have run.
    pub(crate) columns: Columns,
    /// Columns that `DW_CFA_restore` restores.
    initial: Columns,
    /// Columns that `DW_CFA_remember_state` stored.
    remembered: Vec<Columns>,
}

impl Program {
    /// Returns a program that starts with the columns of the common entry.
    pub(crate) fn new(initial: Columns) -> Program {
        Program {
            columns: initial,
            initial,
            remembered: Vec::new(),
        }
    }

    /// Runs an instruction that does not advance the address. Returns `None` if the instruction is
    /// invalid.
    pub(crate) fn run<'a>(
        &mut self,
        instruction: CallFrameInstruction<usize>,
        section: &impl UnwindSection<Slice<'a>>,
        common: &Common<'a>,
    ) -> Option<()> {
        use CallFrameInstruction as Instruction;
        let signed = |offset: u64| i64::try_from(offset).ok();
        let factored = |offset: i64| offset.checked_mul(common.data_alignment_factor());
        let compute = |expression: UnwindExpression<usize>| {
            Computed::new(expression.get(section).ok()?, common.encoding())
        };
        match instruction {
            Instruction::DefCfa { register, offset } => {
                self.columns.cfa = Some(Computed::Register(register, signed(offset)?));
            }
            Instruction::DefCfaSf {
                register,
                factored_offset,
            } => {
                self.columns.cfa = Some(Computed::Register(register, factored(factored_offset)?));
            }
            Instruction::DefCfaRegister { register } => {
                let Some(Computed::Register(base, _)) = &mut self.columns.cfa else {
                    return None;
                };
                *base = register;
            }
            Instruction::DefCfaOffset { offset } => self.set_cfa_offset(signed(offset)?)?,
            Instruction::DefCfaOffsetSf { factored_offset } => {
                self.set_cfa_offset(factored(factored_offset)?)?;
            }
            Instruction::DefCfaExpression { expression } => {
                self.columns.cfa = compute(expression);
            }
            Instruction::Undefined { register } => self.columns.set(register, Saved::Undefined),
            Instruction::SameValue { register } => self.columns.set(register, Saved::Same),
            Instruction::Offset {
                register,
                factored_offset,
            } => {
                let offset = factored(signed(factored_offset)?)?;
                self.columns.set(register, Saved::AtCfa(offset));
            }
            Instruction::OffsetExtendedSf {
                register,
                factored_offset,
            } => {
                let offset = factored(factored_offset)?;
                self.columns.set(register, Saved::AtCfa(offset));
            }
            Instruction::Register {
                dest_register,
                src_register,
            } => self
                .columns
                .set(dest_register, Saved::InRegister(src_register)),
            Instruction::Expression {
                register,
                expression,
            } => {
                let saved = compute(expression).map_or(Saved::Elsewhere, Saved::At);
                self.columns.set(register, saved);
            }
            Instruction::ValOffset { register, .. }
            | Instruction::ValOffsetSf { register, .. }
            | Instruction::ValExpression { register, .. } => {
                self.columns.set(register, Saved::Elsewhere);
            }
            Instruction::Restore { register } => {
                self.columns.set(register, self.initial.get(register));
            }
            Instruction::RememberState => {
                if self.remembered.len() == REMEMBERED_LIMIT {
                    return None;
                }
                self.remembered.push(self.columns);
            }
            Instruction::RestoreState => self.columns = self.remembered.pop()?,
            Instruction::ArgsSize { .. } | Instruction::Nop => {}
            _ => return None,
        }
        Some(())
    }

    fn set_cfa_offset(&mut self, to: i64) -> Option<()> {
        let Some(Computed::Register(_, offset)) = &mut self.columns.cfa else {
            return None;
        };
        *offset = to;
        Some(())
    }
}
