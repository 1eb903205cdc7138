//! Evaluates a section of call frame information: `.eh_frame` (Linux Standard Base Core 5.0,
//! section 10.6) or `.debug_frame` (DWARF 5, section 6.4).

pub(crate) mod columns;
pub(crate) mod expression;
pub(crate) mod interpreter;

use std::collections::HashMap;

use elf::Fields;
use foldhash::fast::RandomState;
use gimli::{
    BaseAddresses, CallFrameInstruction, CommonInformationEntry, DebugFrame, EhFrame, EndianSlice,
    FrameDescriptionEntry, LittleEndian, UnwindOffset, UnwindSection,
};

use crate::arch::RETURN_ADDRESS;
use crate::cfi::columns::Columns;
use crate::cfi::interpreter::Program;
use crate::error::Error;
use crate::ranges::{From, Span};
use crate::rule::Rule;

/// Maximum number of frame descriptions. The largest browsers have about two million.
const DESCRIPTION_LIMIT: u64 = 8 << 20;
/// Maximum number of common entries in a section. Linkers merge equal common entries, except in
/// `.debug_frame`, where every compilation unit has its own.
const COMMON_LIMIT: usize = 1 << 17;
/// Maximum size of a common entry, in bytes. Compilers write some dozens of bytes.
const COMMON_SIZE_LIMIT: usize = 1 << 10;

type Slice<'a> = EndianSlice<'a, LittleEndian>;
type Common<'a> = CommonInformationEntry<Slice<'a>>;
type Description<'a> = FrameDescriptionEntry<Slice<'a>>;

/// Section, and those of its entries that were read.
pub(crate) struct Frames<'a, S: UnwindSection<Slice<'a>>> {
    section: S,
    bytes: &'a [u8],
    bases: BaseAddresses,
    from: fn(u32) -> From,
    /// Common entries by offset, each with the columns after its instructions; `None` for an
    /// unreadable entry.
    common: HashMap<usize, Option<(Common<'a>, Columns)>, RandomState>,
    /// Number of descriptions that were found.
    pub(crate) found: u64,
    /// Number of descriptions with invalid bytes. They cannot be used, completely or from some
    /// instruction on.
    pub(crate) unreadable: u64,
}

impl<'a> Frames<'a, EhFrame<Slice<'a>>> {
    /// Returns a reader of the section `.eh_frame` at `address`.
    pub(crate) fn eh_frame(bytes: &'a [u8], address: u64) -> Self {
        let mut section = EhFrame::new(bytes, LittleEndian);
        section.set_address_size(8);
        Frames::new(section, bytes, address, From::EhFrame)
    }
}

impl<'a> Frames<'a, DebugFrame<Slice<'a>>> {
    /// Returns a reader of `.debug_frame`.
    pub(crate) fn debug_frame(bytes: &'a [u8]) -> Self {
        let mut section = DebugFrame::new(bytes, LittleEndian);
        section.set_address_size(8);
        Frames::new(section, bytes, 0, From::DebugFrame)
    }
}

impl<'a, S: UnwindSection<Slice<'a>>> Frames<'a, S>
where
    S::Offset: UnwindOffset<usize>,
{
    fn new(section: S, bytes: &'a [u8], address: u64, from: fn(u32) -> From) -> Self {
        Frames {
            section,
            bytes,
            bases: BaseAddresses::default().set_eh_frame(address),
            from,
            common: HashMap::default(),
            found: 0,
            unreadable: 0,
        }
    }

    /// Returns the addresses of all descriptions, in the order of the section.
    ///
    /// This function steps from entry to entry itself, because gimli stops at the first entry that
    /// it does not understand.
    pub(crate) fn spans(&mut self) -> Result<Vec<Span>, Error> {
        let mut spans = Vec::new();
        let mut next = 0;
        while let Some(rest) = self.bytes.get(next..).filter(|rest| rest.len() >= 8) {
            let offset = next;
            let fields = Fields(rest);
            let (header, length) = match fields.u32(0) {
                0 if S::has_zero_terminator() => break,
                0xffff_ffff => (12, fields.u64(4)),
                length => (4, u64::from(length)),
            };
            let Some(end) = usize::try_from(length)
                .ok()
                .and_then(|length| length.checked_add(offset + header))
                .filter(|&end| end <= self.bytes.len())
            else {
                break;
            };
            next = end;
            if length == 0 || self.is_common(rest, header) {
                continue;
            }
            self.found += 1;
            Error::limit("frame descriptions", self.found, DESCRIPTION_LIMIT)?;
            match self.description(offset).and_then(|(description, _)| {
                let start = description.initial_address();
                Some(Span {
                    start,
                    end: start.checked_add(description.len())?,
                    from: (self.from)(u32::try_from(offset).ok()?),
                })
            }) {
                Some(span) => spans.push(span),
                None => self.unreadable += 1,
            }
        }
        Ok(spans)
    }

    /// Returns whether the entry at the start of `bytes` is a common entry.
    fn is_common(&self, bytes: &[u8], header: usize) -> bool {
        let fields = Fields(bytes);
        if S::has_zero_terminator() {
            fields.u32(header) == 0
        } else if header == 12 {
            fields.u64(header) == u64::MAX
        } else {
            fields.u32(header) == u32::MAX
        }
    }

    /// Returns the description at `offset`, and the columns before its instructions.
    fn description(&mut self, offset: usize) -> Option<(Description<'a>, Columns)> {
        let partial = self
            .section
            .partial_fde_from_offset(&self.bases, offset.into())
            .ok()?;
        let offset = UnwindOffset::into(partial.cie_offset());
        if !self.common.contains_key(&offset) && self.common.len() < COMMON_LIMIT {
            let common = read_common(&self.section, &self.bases, offset);
            self.common.insert(offset, common);
        }
        let (common, columns) = self.common.get(&offset)?.as_ref()?;
        let description = partial.parse(|_, _, _| Ok(common.clone())).ok()?;
        Some((description, *columns))
    }

    /// Calls `emit` with the rows of the description at `offset`. The first row is for the start of
    /// `span`, and no row is beyond its end.
    pub(crate) fn rows(
        &mut self,
        span: &Span,
        offset: u32,
        emit: &mut impl FnMut(u64, Rule) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Some((description, initial)) = self.description(offset as usize) else {
            return Ok(());
        };
        let common = description.cie();
        let signal = description.is_signal_trampoline();
        let mut program = Program::new(initial);
        let mut address = description.initial_address();
        let mut row = span.start;
        let mut instructions = description.instructions(&self.section, &self.bases);
        while row < span.end {
            let next = match instructions.next() {
                Ok(None) => return emit(row, program.columns.rule(signal)),
                Ok(Some(CallFrameInstruction::AdvanceLoc { delta })) => u64::from(delta)
                    .checked_mul(common.code_alignment_factor())
                    .and_then(|bytes| address.checked_add(bytes)),
                Ok(Some(CallFrameInstruction::SetLoc { address: to })) => {
                    Some(to).filter(|&to| to >= address)
                }
                Ok(Some(instruction)) => match program.run(instruction, &self.section, common) {
                    Some(()) => continue,
                    None => None,
                },
                Err(_) => None,
            };
            let Some(next) = next else {
                self.unreadable += 1;
                return emit(row, Rule::NONE);
            };
            address = next;
            if address > row {
                emit(row, program.columns.rule(signal))?;
                row = address;
            }
        }
        Ok(())
    }
}

/// Reads the common entry at `offset`. Returns the entry and the columns after its instructions.
/// The instructions run only once, for all descriptions that refer to the entry.
fn read_common<'a, S: UnwindSection<Slice<'a>>>(
    section: &S,
    bases: &BaseAddresses,
    offset: usize,
) -> Option<(Common<'a>, Columns)> {
    let common = section.cie_from_offset(bases, offset.into()).ok()?;
    if common.entry_len() > COMMON_SIZE_LIMIT || common.return_address_register() != RETURN_ADDRESS
    {
        return None;
    }
    let mut program = Program::new(Columns::EMPTY);
    let mut instructions = common.instructions(section, bases);
    while let Some(instruction) = instructions.next().ok()? {
        program.run(instruction, section, &common)?;
    }
    Some((common, program.columns))
}

#[cfg(test)]
mod tests;
