//! Compiled code: its debug information tells which functions the compiler inlined at an address.

use bpf::types::headers::hotspot_flags;

use super::layout::{DebugInfo, Machine, Scopes};
use super::method::{self, Numbers};
use crate::chain::Frame;
use crate::language::Pieces;

/// Maximum size of each part of the debug information of one piece of code, in bytes.
const MAX_BYTES: u64 = 16 << 20;
/// Bytes of a scope that are read: three compressed numbers.
const SCOPE_BYTES: usize = 15;
/// Maximum number of functions inlined into each other.
const MAX_DEPTH: usize = 256;
/// Size of a `PcDesc`, and the offsets of its fields (pcDesc.hpp).
const DESCRIPTION_BYTES: usize = 16;
const SCOPE: usize = 4;
/// Value by which a scope's position exceeds the bytecode's. The position of code before the first
/// bytecode is 0.
const FIRST_POSITION: i32 = 1;

/// Blob of compiled code.
struct Blob<'a, M: ?Sized> {
    memory: &'a M,
    machine: &'a Machine,
    address: u64,
}

impl<M: Pieces + ?Sized> Blob<'_, M> {
    fn u64(&self, offset: u16) -> Option<u64> {
        let bytes = self
            .memory
            .bytes(self.address.checked_add(offset.into())?, 8);
        Some(u64::from_le_bytes(*bytes.first_chunk()?))
    }

    fn u32(&self, offset: u16) -> Option<u32> {
        let bytes = self
            .memory
            .bytes(self.address.checked_add(offset.into())?, 4);
        Some(u32::from_le_bytes(*bytes.first_chunk()?))
    }

    /// Returns the address at the offset in a field.
    fn behind(&self, offset: u16) -> Option<u64> {
        self.address.checked_add(self.u32(offset)?.into())
    }

    fn compile_id(&self) -> Option<u32> {
        let layout = &self.machine.layout;
        self.u32(layout.compile_id.checked_sub(layout.block_header)?)
    }

    /// Returns the addresses of the descriptions and of the scopes with their ends, and of the
    /// metadata.
    fn debug_info(&self) -> Option<[u64; 5]> {
        match self.machine.debug_info {
            DebugInfo::Inside {
                scopes,
                pcs,
                pcs_end,
                metadata,
            } => {
                let pcs = self.behind(pcs)?;
                let scopes = match scopes {
                    Scopes::Address(offset) => self.u64(offset)?,
                    Scopes::Offset(offset) => self.behind(offset)?,
                };
                let ends = [self.behind(pcs_end)?, pcs];
                Some([pcs, ends[0], scopes, ends[1], self.behind(metadata)?])
            }
            DebugInfo::Outside {
                immutable,
                immutable_size,
                scopes,
                pcs,
                mutable,
                relocations_size,
            } => {
                let start = self.u64(immutable)?;
                let at = |offset: u16| start.checked_add(self.u32(offset)?.into());
                let relocations = self.u32(relocations_size)?;
                let metadata = self.u64(mutable)?.checked_add(relocations.into())?;
                let scopes = at(scopes)?;
                Some([at(pcs)?, scopes, scopes, at(immutable_size)?, metadata])
            }
        }
    }

    fn frame(&self, method: u64, instruction: i32) -> Option<Frame> {
        Some(Frame {
            code: method,
            instruction,
            checksum: method::code(self.memory, self.machine, method)?.checksum,
            machine_code: 0,
        })
    }

    /// Returns the functions inlined at a distance from the start of the code, innermost first.
    fn functions(&self, distance: i32) -> Option<Vec<Frame>> {
        let outermost = || {
            let method = self.u64(self.machine.compiled_method)?;
            Some(vec![self.frame(method, -1)?])
        };
        let Some([pcs, pcs_end, scopes, scopes_end, metadata]) = self.debug_info() else {
            return outermost();
        };
        let sizes = [pcs_end.checked_sub(pcs)?, scopes_end.checked_sub(scopes)?];
        if sizes.into_iter().any(|size| size > MAX_BYTES) {
            return None;
        }
        let description = |index: u64| {
            let at = pcs.checked_add(DESCRIPTION_BYTES as u64 * index)?;
            Some(*self.memory.bytes(at, DESCRIPTION_BYTES).first_chunk()?)
        };
        let count = sizes[0] / DESCRIPTION_BYTES as u64;
        let Some(scope) = scope_at(count, description, distance) else {
            return outermost();
        };
        let scope_bytes = |offset: u32| {
            let is_inside = u64::from(offset) < sizes[1];
            let at = scopes.checked_add(offset.into()).filter(|_| is_inside)?;
            Some(self.memory.bytes(at, SCOPE_BYTES))
        };
        let mut frames = Vec::new();
        for (index, position) in inlined(scope_bytes, scope, self.machine.number_base) {
            let offset = u64::from(index.checked_sub(1)?) * 8;
            let method = self.memory.bytes(metadata.checked_add(offset)?, 8);
            let method = u64::from_le_bytes(*method.first_chunk()?);
            frames.push(self.frame(method, position)?);
        }
        if frames.is_empty() {
            return outermost();
        }
        Some(frames)
    }
}

/// Returns the scope of the description at a distance from the start of the code. A return address
/// has a description of its own. For an interrupted instruction, HotSpot takes the next one. The
/// `count` descriptions are sorted.
fn scope_at(
    count: u64,
    description: impl Fn(u64) -> Option<[u8; DESCRIPTION_BYTES]>,
    distance: i32,
) -> Option<u32> {
    let pc = |at: &[u8; DESCRIPTION_BYTES]| i32::from_le_bytes([at[0], at[1], at[2], at[3]]);
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if pc(&description(middle)?) < distance {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    // The last description ends the table.
    if low + 1 >= count {
        return None;
    }
    let found = description(low)?;
    let scope = u32::from_le_bytes(*found.get(SCOPE..)?.first_chunk()?);
    (scope != 0).then_some(scope)
}

/// Returns the numbers of the functions at a scope and their bytecodes, innermost first. Each scope
/// has the offset of its caller's scope, which comes before it. `scope_bytes` returns the bytes at
/// an offset.
fn inlined(
    scope_bytes: impl Fn(u32) -> Option<Vec<u8>>,
    mut scope: u32,
    number_base: u32,
) -> Vec<(u32, i32)> {
    let mut found = Vec::new();
    while scope != 0 && found.len() < MAX_DEPTH {
        let Some(bytes) = scope_bytes(scope) else {
            break;
        };
        let mut numbers = Numbers::new(&bytes, number_base);
        let mut next = || numbers.unsigned();
        let (Some(sender), Some(method), Some(position)) = (next(), next(), next()) else {
            break;
        };
        found.push((method, position.cast_signed().wrapping_sub(FIRST_POSITION)));
        if sender >= scope {
            break;
        }
        scope = sender;
    }
    found
}

/// Returns the frames of the functions that the compiled frame runs, innermost first; `None` if its
/// code cannot be read, or if other code is at its address.
pub(super) fn functions(
    memory: &(impl Pieces + ?Sized),
    machine: &Machine,
    frame: Frame,
) -> Option<Vec<Frame>> {
    let blob = Blob {
        memory,
        machine,
        address: frame.code,
    };
    let is_same = || blob.compile_id() == Some(frame.checksum);
    let functions = is_same().then(|| blob.functions(frame.instruction))??;
    // The machine may have replaced the code meanwhile.
    is_same().then_some(functions)
}

/// Returns whether fields with the code's places are offsets.
pub(super) fn has_offsets(machine: &Machine, flag: hotspot_flags) -> bool {
    u32::from(machine.layout.flags) & flag.0 != 0
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_the_next_description() {
        let table = [(-1, 0), (16, 1), (40, 9), (i32::MAX, 0)];
        let description = |index: u64| {
            let (pc, scope): (i32, u32) = table[index as usize];
            let words = [pc.cast_unsigned(), scope, 0, 0].map(u32::to_le_bytes);
            Some(*words.as_flattened().first_chunk().unwrap())
        };
        let found = [0, 16, 17, 40, 41].map(|at| scope_at(4, description, at));
        assert_eq!(found, [Some(1), Some(1), Some(9), Some(9), None]);
        assert_eq!(scope_at(0, description, 0), None);
    }

    #[test]
    fn scopes_lead_from_inlined_functions_to_their_callers() {
        // At 1 is the outermost function, and at 4 the function that is inlined into it.
        let inlined = |scopes: &[u8], scope| {
            let bytes = |offset: u32| Some(scopes.get(offset as usize..)?.to_vec());
            super::inlined(bytes, scope, 0)
        };
        let scopes = [0, 0, 1, 5, 1, 2, 0, 0];
        assert_eq!(inlined(&scopes, 4), [(2, -1), (1, 4)]);
        assert_eq!(inlined(&scopes, 1), [(1, 4)]);
        // A scope that is its own caller, and one that is cut off.
        assert_eq!(inlined(&[0, 1, 2, 3], 1), [(2, 2)]);
        assert_eq!(inlined(&scopes, 7), []);
        assert_eq!(inlined(&scopes, 99), []);
    }
}
