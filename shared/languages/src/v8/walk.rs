//! Reads the JavaScript frames of a blocked thread, like `bpf/include/languages/v8.h`.

use unwind::Memory;

use super::engine::Isolate;
use super::functions::checksum;
use super::heap::is_object;
use super::layout::Layout;
use crate::chain::{Chain, End, Frame};
use crate::interleave::Link;
use crate::language::Thread;
use crate::pthread_values::pthread_value;

/// Types of frames that C++ enters through.
const ENTRY: u64 = 1;
const CONSTRUCT_ENTRY: u64 = 2;

/// Slots of a frame, from its frame pointer.
const OUTER_EXIT: i64 = -64;
const BYTECODE_OFFSET: i64 = -40;
const BYTECODE_ARRAY: i64 = -32;
const FUNCTION: i64 = -16;
const CONTEXT: i64 = -8;
const CALLER: i64 = 0;
const RETURN_ADDRESS: i64 = 8;
const EXIT_TARGET: i64 = 24;

/// Offset of the code in a description of a function.
const INFO_CODE: u16 = 8;

/// Maximum length of bytecode.
const BYTECODE_LIMIT: u64 = 1 << 28;

/// Reads the frames of a thread that called C++, but at most `most` links.
pub(super) fn walk(
    memory: &mut (impl Memory + ?Sized),
    layout: &Layout,
    isolate: Isolate,
    thread: Thread,
    most: usize,
) -> Chain {
    let mut walker = Walker {
        memory,
        layout,
        most,
        links: Vec::new(),
        fp: 0,
        pc: 0,
        first_fp: 0,
    };
    let end = match walker.start(isolate, thread) {
        None => End::NoThread,
        Some(()) => loop {
            if let Err(end) = walker.step() {
                break end;
            }
        },
    };
    Chain {
        links: walker.links,
        end,
        interrupted: None,
    }
}

struct Walker<'a, M: ?Sized> {
    memory: &'a mut M,
    layout: &'a Layout,
    most: usize,
    links: Vec<Link<Frame>>,
    fp: u64,
    /// Address at which the frame goes on; 0 if it is unknown.
    pc: u64,
    /// First frame since C++ code.
    first_fp: u64,
}

impl<M: Memory + ?Sized> Walker<'_, M> {
    fn word(&mut self, address: u64) -> Option<u64> {
        self.memory.word(address)
    }

    /// Moves to the frame that called C++.
    fn start(&mut self, isolate: Isolate, thread: Thread) -> Option<()> {
        let thread_pointer = thread.pointer;
        let isolate = match isolate {
            Isolate::OfKey { key, is_created } => {
                let created = self.word(is_created & !7)? >> (is_created % 8 * 8);
                if created as u8 == 0 {
                    return None;
                }
                let word = self.word(key & !7)? >> (key % 8 * 8);
                pthread_value(self.memory, thread_pointer, u64::from(word as u32))?
            }
            Isolate::AtOffset(offset) => self.word(thread_pointer.wrapping_add(offset))?,
            Isolate::InModule(index) => {
                let module = self.word(index)?;
                let offset = self.word(index.wrapping_add(8))?;
                let modules = self.word(thread_pointer.wrapping_add(8))?;
                let storage = self.word(modules.wrapping_add(module.wrapping_mul(16)))?;
                self.word(storage.wrapping_add(offset))?
            }
        };
        if isolate == 0 {
            return None;
        }
        self.fp = self.word(isolate.wrapping_add(self.layout.c_entry_fp.into()))?;
        if self.fp == 0 {
            let call = isolate.wrapping_add(self.layout.fast_c_call_fp.into());
            self.fp = self.word(call)?;
            self.pc = self.word(call.wrapping_add(8))?;
        }
        // A thread that works for another thread has the isolate of that thread.
        let sp = thread.stack_pointer;
        let is_own = self.fp >= sp && (thread_pointer <= sp || self.fp < thread_pointer);
        self.first_fp = self.fp;
        (self.fp != 0 && is_own).then_some(())
    }

    fn slot(&mut self, slot: i64) -> Result<u64, End> {
        let address = self.fp.wrapping_add_signed(slot);
        self.word(address).ok_or(End::ReadFailed)
    }

    /// Adds the frame and moves to its caller. Returns an error at the end of the chain.
    fn step(&mut self) -> Result<(), End> {
        if self.fp == 0 {
            return Err(End::Whole);
        }
        if !self.fp.is_multiple_of(8) {
            return Err(End::Broken);
        }
        let context = self.slot(CONTEXT)?;
        let mut caller = self.slot(CALLER)?;
        let pc = std::mem::replace(&mut self.pc, 0);
        let return_address = self.slot(RETURN_ADDRESS)?;
        self.pc = return_address;
        if context & 1 == 1 {
            if !is_object(context) {
                return Err(End::Broken);
            }
            let function = self.slot(FUNCTION)?;
            self.frame(function, Some(pc))?;
        } else if context >> 1 == ENTRY || context >> 1 == CONSTRUCT_ENTRY {
            self.push(Link::Span(self.first_fp, self.fp))?;
            caller = self.slot(OUTER_EXIT)?;
            self.first_fp = caller;
            self.pc = 0;
            if caller == 0 {
                self.fp = 0;
                return Ok(());
            }
        } else if context >> 1 == u64::from(self.layout.builtin_exit) {
            let function = self.slot(EXIT_TARGET)?;
            self.frame(function, None)?;
        } else if context >> 1 == u64::from(self.layout.wasm) {
            self.push(Link::Frame(Frame {
                code: 0,
                instruction: 0,
                checksum: 0,
                machine_code: 0,
            }))?;
        }
        if caller <= self.fp {
            return Err(End::Broken);
        }
        self.fp = caller;
        Ok(())
    }

    /// Adds the frame of a `JSFunction`, whose code goes on at `pc`; `None` for a function that C++
    /// implements.
    fn frame(&mut self, function: u64, pc: Option<u64>) -> Result<(), End> {
        let shared = function.wrapping_sub(1);
        let shared = shared.wrapping_add(self.layout.function_shared.into());
        let info = self.word(shared).filter(|_| is_object(function));
        let info = info
            .filter(|info| is_object(*info))
            .ok_or(End::ReadFailed)?
            - 1;
        let layout = self.layout;
        let mut field = |offset: u16| {
            let word = self.word(info.wrapping_add(offset.into()));
            word.ok_or(End::ReadFailed)
        };
        let (code, name) = (field(INFO_CODE)?, field(layout.info_name)?);
        let script = field(layout.info_script)?;
        let bytecode = match pc {
            None => Some(0),
            Some(_) => self.bytecode_offset(code)?,
        };
        self.push(Link::Frame(Frame {
            code: info,
            instruction: bytecode.unwrap_or(-1),
            checksum: checksum(name, script),
            machine_code: match (bytecode, pc) {
                (None, Some(pc)) => pc.saturating_sub(1),
                _ => 0,
            },
        }))
    }

    /// Returns the position in the bytecode if the frame is interpreted. `code` is the code of the
    /// function.
    fn bytecode_offset(&mut self, code: u64) -> Result<Option<i32>, End> {
        let array = self.slot(BYTECODE_ARRAY)?;
        let offset = self.slot(BYTECODE_OFFSET)?;
        if !is_object(array) || offset as u32 != 0 {
            return Ok(None);
        }
        if array != code {
            let data = code.wrapping_sub(1);
            let data = data.wrapping_add(self.layout.code_data.into());
            if !is_object(code) || self.word(data) != Some(array) {
                return Ok(None);
            }
        }
        let first = u64::from(self.layout.bytecode_data) - 1;
        let offset = (offset >> 32).checked_sub(first);
        Ok(offset
            .filter(|offset| *offset < BYTECODE_LIMIT)
            .and_then(|offset| i32::try_from(offset).ok()))
    }

    /// Adds a link. A forged chain may be long, so the maximum length bounds it.
    fn push(&mut self, link: Link<Frame>) -> Result<(), End> {
        if self.links.len() >= self.most {
            return Err(End::TooDeep);
        }
        self.links.push(link);
        Ok(())
    }
}
