//! Reads the Ruby frames of a blocked thread, like `bpf/include/languages/ruby.h`.

use unwind::Memory;

use super::Layout;
use super::objects::element_by;
use crate::chain::{Chain, End, Frame, hash_word};
use crate::interleave::{Link, activations};

/// The dynamic thread vector is the second word at the thread pointer.
const VECTOR: u64 = 8;
const VECTOR_ENTRY: u64 = 16;
const MAX_MODULES: u64 = 65536;

/// Offsets in `rb_execution_context_t` (vm_core.h).
const STACK: u64 = 0;
const STACK_WORDS: u64 = 8;
const FRAME: u64 = 16;
const MAX_WORDS: u64 = 1 << 32;

/// Offsets in `rb_control_frame_t`.
const PC: u64 = 0;
const ISEQ: u64 = 16;
const ENVIRONMENT: u64 = 32;

/// `enum vm_frame_env_flags`.
const KIND: u64 = 0x7fff_0001;
const C_FUNCTION: u64 = 0x5555_0001;
const DUMMY: u64 = 0x7999_0001;
const FINISH: u64 = 0x20;

/// `enum imemo_type`, in the flags of an object.
const MEMO_SHIFT: u32 = 12;
const MEMO_SVAR: u64 = 2;
const MEMO_METHOD: u64 = 6;

const ISEQ_BODY: u64 = 16;
/// Offsets in `struct rb_iseq_constant_body`.
pub(super) const BODY_CODE: u64 = 8;
pub(super) const BODY_PATH: u64 = 64;
pub(super) const BODY_LABEL: u64 = 80;

/// Maximum position in a function's code, in words.
const MAX_INSTRUCTIONS: u64 = 1 << 28;

/// `tLAST_OP_ID` of id.h: IDs of operators are their serial numbers.
const LAST_OPERATOR: u64 = 169;
/// `ID_ENTRY_UNIT` and `ID_ENTRY_SIZE` of symbol.c, and the array in `global_symbols`.
const IDS_AT_ONCE: u64 = 512;
const WORDS_OF_ID: u64 = 2;
const SYMBOLS_IDS: u64 = 16;

/// Marks, in the lower bits of a frame's code. Other code is the address of a function's body.
///
/// The code has the ID of a function in C. A program's copy has the name.
pub(super) const IS_ID: u64 = 1;
/// The code has the address of the name of a function in C.
pub(super) const IS_NAME: u64 = 2;

/// Runtime in a process.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Address of the `tls_index` of the variable that leads to a thread's frames.
    pub context: u64,
    /// Address of `global_symbols`.
    pub symbols: u64,
}

/// Reads the frames of a thread, but at most `most` links.
pub fn walk(
    memory: &mut (impl Memory + ?Sized),
    layout: &Layout,
    place: Place,
    thread_pointer: u64,
    most: usize,
) -> Chain {
    let mut walker = Walker {
        memory,
        layout,
        place,
        most,
        links: Vec::new(),
    };
    let end = match walker.start(thread_pointer) {
        None => End::NoThread,
        Some((frame, end)) => walker.frames(frame, end),
    };
    Chain {
        links: walker.links,
        end,
        interrupted: None,
    }
}

/// Returns the checksum of the body at `body`. `word` returns the word at an address.
pub(super) fn checksum(
    mut word: impl FnMut(u64) -> Option<u64>,
    layout: &Layout,
    body: u64,
) -> Option<u32> {
    let mut field = |offset: u64| word(body.wrapping_add(offset));
    let words = [
        field(0)?,
        field(BODY_CODE)?,
        field(BODY_PATH)?,
        field(BODY_LABEL)?,
        field(layout.body_lines.into())?,
        u64::from(field(layout.body_count.into())? as u32),
        field(layout.body_index.into())?,
    ];
    Some((words.into_iter().fold(0, hash_word) >> 32) as u32)
}

struct Walker<'a, M: ?Sized> {
    memory: &'a mut M,
    layout: &'a Layout,
    place: Place,
    most: usize,
    links: Vec<Link<Frame>>,
}

impl<M: Memory + ?Sized> Walker<'_, M> {
    fn word(&mut self, address: u64) -> Option<u64> {
        let is_aligned = address.is_multiple_of(8);
        is_aligned.then(|| self.memory.word(address))?
    }

    /// Returns the innermost frame of a thread, and the end of its frames.
    fn start(&mut self, thread_pointer: u64) -> Option<(u64, u64)> {
        let module = self.word(self.place.context)?;
        let offset = self.word(self.place.context.wrapping_add(8))?;
        if module == 0 || module >= MAX_MODULES {
            return None;
        }
        let vector = self.word(thread_pointer.wrapping_add(VECTOR))?;
        let block = self.word(vector.wrapping_add(module * VECTOR_ENTRY))?;
        if block == 0 || block == u64::MAX {
            return None;
        }
        let variable = block.wrapping_add(offset);
        let context = self.word(variable).filter(|context| *context != 0)?;
        let stack = self.word(context.wrapping_add(STACK))?;
        let words = self.word(context.wrapping_add(STACK_WORDS))?;
        let frame = self.word(context.wrapping_add(FRAME))?;
        let is_there = stack != 0 && words <= MAX_WORDS && frame >= stack;
        is_there.then(|| (frame, stack.wrapping_add(words * 8)))
    }

    fn frames(&mut self, first: u64, last: u64) -> End {
        let size = u64::from(self.layout.frame_bytes);
        let mut frame = first;
        // Frames without a function leave no links.
        for _ in 0..2 * self.most {
            if frame >= last {
                return End::Whole;
            }
            if let Err(end) = self.step(frame) {
                return end;
            }
            frame = frame.wrapping_add(size);
        }
        End::TooDeep
    }

    fn step(&mut self, frame: u64) -> Result<(), End> {
        if !frame.is_multiple_of(8) {
            return Err(End::Broken);
        }
        let mut field = |offset: u64| self.word(frame.wrapping_add(offset)).ok_or(End::ReadFailed);
        let (pc, iseq, environment) = (field(PC)?, field(ISEQ)?, field(ENVIRONMENT)?);
        if !environment.is_multiple_of(8) {
            return Err(End::Broken);
        }
        let flags = self.word(environment).ok_or(End::ReadFailed)?;
        if flags & KIND == DUMMY {
            return Ok(());
        }
        if flags & KIND == C_FUNCTION {
            let entry = self
                .word(environment.wrapping_sub(16))
                .ok_or(End::ReadFailed)?;
            let name = self.name(entry).unwrap_or(0);
            self.push(Link::Frame(Frame {
                code: name | IS_NAME,
                instruction: 0,
                checksum: 0,
                machine_code: 0,
            }))?;
        } else if iseq != 0 && pc != 0 {
            let body = self
                .word(iseq.wrapping_add(ISEQ_BODY))
                .ok_or(End::ReadFailed)?;
            if !body.is_multiple_of(8) {
                return Err(End::Broken);
            }
            let layout = self.layout;
            let checksum = checksum(|at| self.word(at), layout, body);
            let code = self.word(body.wrapping_add(BODY_CODE));
            let (Some(checksum), Some(code)) = (checksum, code) else {
                return Err(End::ReadFailed);
            };
            let position = pc.wrapping_sub(code) / 8;
            if position >= MAX_INSTRUCTIONS {
                return Err(End::Broken);
            }
            self.push(Link::Frame(Frame {
                code: body,
                instruction: position as i32,
                checksum,
                machine_code: 0,
            }))?;
        }
        if flags & FINISH != 0 {
            self.push(Link::Anchor(activations::ACTIVATION))?;
        }
        Ok(())
    }

    /// Returns the address of the name of the method with this entry. The entry may be behind the
    /// special variables of the frame.
    fn name(&mut self, entry: u64) -> Option<u64> {
        let mut entry = entry;
        let mut flags = self.word(entry)?;
        if flags >> MEMO_SHIFT & 15 == MEMO_SVAR {
            entry = self.word(entry.wrapping_add(8))?;
            flags = self.word(entry)?;
        }
        if flags >> MEMO_SHIFT & 15 != MEMO_METHOD {
            return None;
        }
        let definition = self.word(entry.wrapping_add(16))?;
        let id = self.word(definition.wrapping_add(32))?;
        let number = if id > LAST_OPERATOR { id >> 4 } else { id };
        let ids = self.word(self.place.symbols.wrapping_add(SYMBOLS_IDS))?;
        let some = element_by(|at| self.word(at), ids, number / IDS_AT_ONCE)?;
        let index = number % IDS_AT_ONCE * WORDS_OF_ID;
        let name = element_by(|at| self.word(at), some, index)?;
        name.is_multiple_of(8).then_some(name)
    }

    fn push(&mut self, link: Link<Frame>) -> Result<(), End> {
        if self.links.len() >= self.most {
            return Err(End::TooDeep);
        }
        self.links.push(link);
        Ok(())
    }
}
