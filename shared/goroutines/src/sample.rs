//! One look at all goroutines.

use std::collections::HashSet;
use std::ops::Range;

use crate::layout::Layout;
use crate::memory::{Memory, read_ranges, word_at};

/// Maximum number of goroutines that are read.
pub(crate) const MAX_GOROUTINES: u64 = 1 << 18;
/// Maximum number of bytes of a stack that are read.
const MAX_STACK_BYTES: u64 = 64 << 10;
/// Maximum number of bytes of all stacks that one look reads. A goroutine uses about 500 bytes.
const MAX_ALL_STACKS: u64 = 256 << 20;
/// Maximum number of frames of a stack.
const MAX_FRAMES: usize = 512;
/// Maximum size of a stack. Go's own limit is 1 GB.
const MAX_STACK_SIZE: u64 = 1 << 30;

/// States of a goroutine (`runtime/runtime2.go`).
mod status {
    pub(super) const RUNNABLE: u32 = 1;
    pub(super) const RUNNING: u32 = 2;
    pub(super) const SYSTEM_CALL: u32 = 3;
    pub(super) const WAITING: u32 = 4;
    pub(super) const COPIES_STACK: u32 = 8;
    pub(super) const PREEMPTED: u32 = 9;
    /// Waits for what no other goroutine can provide, as the garbage collector has found.
    pub(super) const LEAKED: u32 = 10;
    /// Statuses of goroutines that do not exist yet or no longer, and are kept for new ones.
    pub(super) const UNUSED: [u32; 5] = [0, 5, 6, 7, 11];
    /// The garbage collector scans the stack.
    pub(super) const SCAN: u32 = 0x1000;
}

/// Places in the program of one process.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) layout: Layout,
    /// Address of `runtime.allglen`, the number of goroutines.
    pub(crate) count: u64,
    /// Address of `runtime.allgptr`, the address of the list of goroutines.
    pub(crate) list: u64,
    /// `runtime.goexit`, to which the outermost function of a goroutine returns.
    pub(crate) exit: Range<u64>,
    /// Executable mappings.
    pub(crate) code: Vec<Range<u64>>,
    /// Number of reasons that the program knows.
    pub(crate) reasons: usize,
}

/// Condition of a goroutine that does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Condition {
    /// Waits for the reason with this number.
    Waiting(u8),
    /// Waits for a thread.
    Runnable,
}

/// Stack of a goroutine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Chain {
    /// Addresses from the leaf to the root. No addresses if the goroutine changed during the read.
    pub(crate) addresses: Vec<u64>,
    /// True if the leaf is no return address: the goroutine has not run yet.
    pub(crate) is_new: bool,
    /// True if the outermost function is known.
    pub(crate) is_whole: bool,
}

/// A goroutine that does not run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stopped {
    pub(crate) condition: Condition,
    pub(crate) chain: Chain,
    /// Address after the `go` statement that created the goroutine.
    pub(crate) creator: u64,
}

/// Result of one look.
#[derive(Debug, Default)]
pub(crate) struct Look {
    pub(crate) stopped: Vec<Stopped>,
    /// Goroutines that run, or that are in a system call.
    pub(crate) on_threads: u64,
    /// Goroutines whose fields contradict each other.
    pub(crate) invalid: u64,
    /// Goroutines beyond [`MAX_GOROUTINES`].
    pub(crate) beyond: u64,
}

/// Fields of a goroutine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fields {
    id: u64,
    status: u32,
    reason: u8,
    stack: (u64, u64),
    sp: u64,
    pc: u64,
    bp: u64,
    itself: u64,
    creator: u64,
}

impl Fields {
    fn parse(bytes: &[u8], layout: &Layout) -> Option<Fields> {
        let status = bytes.get(layout.status..layout.status + 4)?;
        Some(Fields {
            id: word_at(bytes, layout.id)?,
            status: u32::from_le_bytes(status.try_into().ok()?) & !status::SCAN,
            reason: *bytes.get(layout.reason)?,
            stack: (
                word_at(bytes, layout.stack_low)?,
                word_at(bytes, layout.stack_high)?,
            ),
            sp: word_at(bytes, layout.sp)?,
            pc: word_at(bytes, layout.pc)?,
            bp: word_at(bytes, layout.bp)?,
            itself: word_at(bytes, layout.itself)?,
            creator: word_at(bytes, layout.creator)?,
        })
    }

    /// Returns the part of the stack that is in use and is read.
    fn used_stack(&self) -> (u64, usize) {
        let length = (self.stack.1 - self.sp).min(MAX_STACK_BYTES);
        (self.sp, length as usize)
    }
}

impl Places {
    /// Reads all goroutines; `None` if their list cannot be read.
    pub(crate) fn look(&self, memory: &impl Memory) -> Option<Look> {
        let all = memory.word(self.count)?;
        let list = memory.word(self.list)?;
        let count = all.min(MAX_GOROUTINES);
        let bytes = memory.bytes(list, count as usize * 8);
        if bytes.len() as u64 != count * 8 {
            return None;
        }
        let mut look = Look {
            beyond: all - count,
            ..Look::default()
        };
        let addresses = bytes.chunks_exact(8).filter_map(|word| word_at(word, 0));
        let mut addresses: Vec<u64> = addresses.collect();
        addresses.sort_unstable();
        addresses.dedup();

        let size = self.layout.size();
        let ranges: Vec<_> = addresses.iter().map(|address| (*address, size)).collect();
        let mut stopped: Vec<(u64, Fields, Condition)> = Vec::new();
        let mut ids = HashSet::new();
        let mut visited = 0;
        read_ranges(memory, &ranges, |number, bytes| {
            visited += 1;
            let Some(fields) = Fields::parse(bytes, &self.layout) else {
                look.invalid += 1;
                return;
            };
            let condition = match fields.status {
                status::WAITING | status::LEAKED => Condition::Waiting(fields.reason),
                // The garbage collector or the debugger stopped it, and a thread is to go on.
                status::RUNNABLE | status::PREEMPTED => Condition::Runnable,
                status::RUNNING | status::SYSTEM_CALL | status::COPIES_STACK => {
                    look.on_threads += 1;
                    return;
                }
                unused if status::UNUSED.contains(&unused) => return,
                _ => {
                    look.invalid += 1;
                    return;
                }
            };
            let address = ranges[number].0;
            if self.is_valid(address, &fields) && ids.insert(fields.id) {
                stopped.push((address, fields, condition));
            } else {
                look.invalid += 1;
            }
        });
        look.invalid += ranges.len() as u64 - visited;

        let mut room = MAX_ALL_STACKS;
        let stacks = stopped.iter().map(|(_, fields, _)| {
            let (start, length) = fields.used_stack();
            let left = room.checked_sub(length as u64);
            room = left.unwrap_or(0);
            // Without bytes the stack has its leaf alone.
            (start, if left.is_some() { length } else { 0 })
        });
        let stacks: Vec<_> = stacks.collect();
        let mut chains = vec![Chain::default(); stopped.len()];
        read_ranges(memory, &stacks, |number, bytes| {
            chains[number] = self.unwind(&stopped[number].1, bytes);
        });
        // A stack belongs to the fields only if the goroutine has not run between the reads.
        let again: Vec<_> = stopped.iter().map(|(place, ..)| (*place, size)).collect();
        let mut is_same = vec![false; stopped.len()];
        read_ranges(memory, &again, |number, bytes| {
            is_same[number] = Fields::parse(bytes, &self.layout) == Some(stopped[number].1);
        });
        let rows = stopped.into_iter().zip(chains).zip(is_same);
        let rows = rows.map(|(((_, fields, condition), chain), is_same)| Stopped {
            condition,
            chain: if is_same { chain } else { Chain::default() },
            creator: fields.creator,
        });
        look.stopped = rows.collect();
        Some(look)
    }

    /// Returns whether the fields can be those of a goroutine at this address that does not run.
    fn is_valid(&self, address: u64, fields: &Fields) -> bool {
        let (low, high) = fields.stack;
        let waits = matches!(fields.status, status::WAITING | status::LEAKED);
        let reason_is_known = !waits || usize::from(fields.reason) < self.reasons;
        fields.itself == address
            && fields.id > 0
            && low < fields.sp
            && fields.sp < high
            && high - low <= MAX_STACK_SIZE
            && fields.sp.is_multiple_of(8)
            && self.is_code(fields.pc)
            && (fields.creator == 0 || self.is_code(fields.creator))
            && reason_is_known
    }

    fn is_code(&self, address: u64) -> bool {
        self.code.iter().any(|code| code.contains(&address))
    }

    /// Unwinds a stack by its frame pointers. `bytes` begin at the stack pointer.
    fn unwind(&self, fields: &Fields, bytes: &[u8]) -> Chain {
        let mut chain = Chain {
            addresses: vec![fields.pc],
            ..Chain::default()
        };
        if fields.bp == 0 {
            // `runtime.newproc1` has put the return address on the stack, and no function ran yet.
            let starts = word_at(bytes, 0).is_some_and(|word| self.exit.contains(&word));
            chain.is_new = starts;
            chain.is_whole = starts;
            return chain;
        }
        let mut pointer = fields.bp;
        let mut least = fields.sp;
        while chain.addresses.len() < MAX_FRAMES {
            if pointer < least || !pointer.is_multiple_of(8) {
                break;
            }
            let offset = (pointer - fields.sp) as usize;
            let Some(next) = word_at(bytes, offset) else {
                break;
            };
            let Some(caller) = offset.checked_add(8).and_then(|it| word_at(bytes, it)) else {
                break;
            };
            if self.exit.contains(&caller) {
                chain.is_whole = true;
                break;
            }
            if !self.is_code(caller) {
                break;
            }
            chain.addresses.push(caller);
            least = pointer.saturating_add(16);
            pointer = next;
        }
        chain
    }
}

#[cfg(test)]
mod tests;
