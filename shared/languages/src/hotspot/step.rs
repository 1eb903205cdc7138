//! Steps through the frames of Java code, like `bpf/include/languages/hotspot.h`.

use bpf::types::headers::hotspot_flags;
use bpf::types::headers::hotspot_limits as limits;
use unwind::{CodeFrame, GeneratedCode, Memory, Step};

use super::compiled::has_offsets;
use super::layout::Machine;
use super::method;
use crate::arch::{
    BEFORE, CALL_BYTES, Code, METHOD, PROLOGUE_BYTES, RETURN_ADDRESS, SENDER_STACK, State,
    follows_call,
};
use crate::chain::{Chain, End, Frame};
use crate::interleave::Link;
use crate::language::{CodeFrames, Pieces};

/// Position in a native method, which has no bytecode.
const NATIVE: i32 = -1;
/// In place of the address of a bytecode: the method has not begun.
const BEGINS: u64 = 1;

const FRAME_BYTES: u64 = limits::HOTSPOT_FRAME_BYTES.0 as u64;
const STUB_WORDS: usize = limits::HOTSPOT_STUB_WORDS.0 as usize;

/// Unwinder of the frames of one thread.
pub(super) struct Walker<'a> {
    machine: &'a Machine,
    /// Memory of the process, for all but the stack.
    memory: &'a dyn Pieces,
    most: usize,
    chain: Chain,
}

impl<'a> Walker<'a> {
    pub(super) fn new(machine: &'a Machine, memory: &'a dyn Pieces, most: usize) -> Walker<'a> {
        Walker {
            machine,
            memory,
            most,
            chain: Chain::empty(End::Whole),
        }
    }
}

impl GeneratedCode for Walker<'_> {
    fn contains(&self, address: u64) -> bool {
        let layout = &self.machine.layout;
        address.wrapping_sub(layout.code_start) < layout.code_bytes
    }

    fn step(
        &mut self,
        frame: &mut CodeFrame,
        leaf: Option<&[u64; 16]>,
        stack: &mut dyn Memory,
    ) -> Result<Step, unwind::End> {
        let sp = frame.sp;
        let result = Stepper {
            machine: self.machine,
            memory: self.memory,
            stack,
            links: &mut self.chain.links,
            most: self.most,
        }
        .step(frame, leaf);
        let is_inside = self.contains(frame.ip);
        match result {
            Ok(_) if is_inside => Ok(Step::Inside),
            Ok(Some(anchor)) => {
                self.chain.links.push(Link::Anchor(anchor));
                Ok(Step::Left)
            }
            ended => {
                self.chain.end = ended.err().unwrap_or(End::Broken);
                self.chain.links.push(Link::Anchor(sp));
                Err(unwind::End::NoRule)
            }
        }
    }
}

impl CodeFrames for Walker<'_> {
    fn into_chain(self: Box<Self>) -> Chain {
        self.chain
    }
}

struct Stepper<'a> {
    machine: &'a Machine,
    memory: &'a dyn Pieces,
    stack: &'a mut dyn Memory,
    links: &'a mut Vec<Link<Frame>>,
    most: usize,
}

impl Stepper<'_> {
    /// Steps to the caller. Returns an address in the frame if the caller may be native code.
    fn step(
        &mut self,
        frame: &mut CodeFrame,
        leaf: Option<&[u64; 16]>,
    ) -> Result<Option<u64>, End> {
        let layout = &self.machine.layout;
        if self.links.len() >= self.most {
            return Err(End::TooDeep);
        }
        if frame.ip == layout.call_stub_return && !frame.is_exact {
            if !frame.bp.is_multiple_of(8) || frame.bp < frame.sp {
                return Err(End::Broken);
            }
            let anchor = frame.bp;
            self.return_above(frame, anchor)?;
            return Ok(Some(anchor));
        }
        if self.in_interpreter(frame.ip) {
            let is_entry = frame.ip.wrapping_sub(layout.entries_start) < layout.entries_bytes;
            match leaf {
                Some(leaf) if is_entry => self.step_entry(frame, leaf)?,
                None if is_entry && self.returns_from_top(frame.sp) => {
                    self.return_at_top(frame)?;
                }
                _ => {
                    let current = leaf
                        .filter(|_| !is_entry)
                        .map_or(0, |leaf| leaf[SENDER_STACK]);
                    self.step_interpreted(frame, current)?;
                }
            }
            return Ok(None);
        }
        let blob = self.blob(frame.ip).ok_or(End::Broken)?;
        if self.field(blob, layout.kind)? & layout.kind_mask == layout.compiled {
            self.step_compiled(frame, blob)?;
            return Ok(None);
        }
        let anchor = frame.sp;
        self.step_stub(frame, blob)?;
        Ok(Some(anchor))
    }

    fn in_code_cache(&self, address: u64) -> bool {
        let layout = &self.machine.layout;
        address.wrapping_sub(layout.code_start) < layout.code_bytes
    }

    fn in_interpreter(&self, address: u64) -> bool {
        let layout = &self.machine.layout;
        address.wrapping_sub(layout.interpreter_start) < layout.interpreter_bytes
    }

    /// Returns the address of the blob with the code at `address`.
    fn blob(&self, address: u64) -> Option<u64> {
        let layout = &self.machine.layout;
        let heaps = layout.heaps.iter().rev();
        let heap = { heaps }.find(|heap| heap.low <= address)?;
        let mut index = (address - heap.low) >> layout.segment_shift;
        for _ in 0..limits::HOTSPOT_HOPS.0 {
            let back = self.memory.bytes(heap.segments.checked_add(index)?, 1);
            match back.first()? {
                0xff => return None,
                0 => {
                    let block = heap.low.checked_add(index << layout.segment_shift)?;
                    let used = block.checked_add(layout.block_used.into())?;
                    let is_used = self.memory.bytes(used, 1) == [1];
                    let blob = block.checked_add(layout.block_header.into())?;
                    return is_used.then_some(blob);
                }
                back => index = index.checked_sub(u64::from(*back))?,
            }
        }
        None
    }

    /// Returns the word at an offset in the block of a blob.
    fn field(&self, blob: u64, offset: u16) -> Result<u64, End> {
        let block = blob.wrapping_sub(self.machine.layout.block_header.into());
        let bytes = self.memory.bytes(block.wrapping_add(offset.into()), 8);
        let word = bytes.first_chunk().map(|word| u64::from_le_bytes(*word));
        word.ok_or(End::ReadFailed)
    }

    /// Returns the address in a field of a blob.
    fn address(&self, blob: u64, offset: u16) -> Result<u64, End> {
        let word = self.field(blob, offset)?;
        if has_offsets(self.machine, hotspot_flags::HOTSPOT_CODE_IS_OFFSET) {
            return Ok(blob.wrapping_add_signed((word as i32).into()));
        }
        Ok(word)
    }

    /// Returns whether code returns to `address`: it is in the interpreter, or behind a call.
    fn is_return_address(&self, address: u64) -> bool {
        if !self.in_code_cache(address) {
            return false;
        }
        if self.in_interpreter(address) || address == self.machine.layout.call_stub_return {
            return true;
        }
        let before = address.wrapping_sub(CALL_BYTES as u64);
        let code = self.memory.bytes(before, CALL_BYTES);
        code.first_chunk().is_some_and(follows_call)
    }

    fn word(&mut self, address: u64) -> Result<u64, End> {
        self.stack.word(address).ok_or(End::ReadFailed)
    }

    /// Returns whether the word at the stack pointer is a return address.
    fn returns_from_top(&mut self, sp: u64) -> bool {
        let top = self.stack.word(sp);
        top.is_some_and(|address| self.is_return_address(address))
    }

    /// Steps through a frame whose return address is at the stack pointer.
    fn return_at_top(&mut self, frame: &mut CodeFrame) -> Result<(), End> {
        let ip = self.word(frame.sp)?;
        return_to(frame, frame.sp.wrapping_add(8), ip, frame.bp);
        Ok(())
    }

    /// Steps through a frame with the saved frame pointer at `slot`, and the return address above.
    fn return_above(&mut self, frame: &mut CodeFrame, slot: u64) -> Result<(), End> {
        let bp = self.word(slot)?;
        let ip = self.word(slot.wrapping_add(8))?;
        return_to(frame, slot.wrapping_add(16), ip, bp);
        Ok(())
    }

    fn note(&mut self, code: u64, instruction: i32, checksum: u32) {
        self.links.push(Link::Frame(Frame {
            code,
            instruction,
            checksum,
            machine_code: 0,
        }));
    }

    /// Notes a call of `method`. `bytecode` is the address of the bytecode, 0 in a native method,
    /// or [`BEGINS`]. `current` is used in its place if it is in the method.
    fn note_method(&mut self, method: u64, bytecode: u64, current: u64) -> Result<(), End> {
        if method == 0 || !method.is_multiple_of(8) {
            return Err(End::Broken);
        }
        let code = method::code(self.memory, self.machine, method).ok_or(End::ReadFailed)?;
        let position = |address: u64| {
            let distance = address.wrapping_sub(code.start);
            (distance < u64::from(code.size)).then_some(distance as i32)
        };
        let instruction = match position(current).or_else(|| position(bytecode)) {
            Some(instruction) => instruction,
            None if code.size == 0 || bytecode == 0 => NATIVE,
            None if bytecode == BEGINS => 0,
            None => return Err(End::Broken),
        };
        self.note(method, instruction, code.checksum);
        Ok(())
    }

    /// Steps through a frame of the interpreter by its frame pointer.
    fn step_interpreted(&mut self, frame: &mut CodeFrame, current: u64) -> Result<(), End> {
        if !frame.bp.is_multiple_of(8) || frame.bp.wrapping_sub(frame.sp) > FRAME_BYTES {
            return Err(End::Broken);
        }
        let below = i64::from(limits::HOTSPOT_WORDS_BELOW.0);
        let slot = |index: u32| frame.bp.wrapping_add_signed(8 * (i64::from(index) - below));
        let bytecode = i64::from(self.machine.layout.bytecode_slot);
        let bytecode = self.word(frame.bp.wrapping_add_signed(8 * bytecode))?;
        let method = self.word(slot(limits::HOTSPOT_METHOD.0))?;
        let sp = self.word(slot(limits::HOTSPOT_SENDER_SP.0))?;
        let (bp, ip) = (self.word(frame.bp)?, self.word(frame.bp.wrapping_add(8))?);
        self.note_method(method, bytecode, current)?;
        return_to(frame, sp, ip, bp);
        Ok(())
    }

    /// Steps through a frame of the interpreter while it enters a method, where it has not built
    /// the frame yet, or only a part of it. Registers have the method, the caller's stack
    /// pointer, and the return address once it is off the stack.
    fn step_entry(&mut self, frame: &mut CodeFrame, leaf: &[u64; 16]) -> Result<(), End> {
        let words = 1 - i64::from(self.machine.layout.bytecode_slot);
        let whole = words.cast_unsigned() * 8;
        let built = frame.bp.wrapping_sub(frame.sp);
        let mut sp = leaf[SENDER_STACK];
        if built.is_multiple_of(8) && built < whole {
            if built > 0 {
                sp = self.word(frame.bp.wrapping_sub(8))?;
            }
            let (bp, ip) = (self.word(frame.bp)?, self.word(frame.bp.wrapping_add(8))?);
            self.note_method(leaf[METHOD], BEGINS, 0)?;
            return_to(frame, sp, ip, bp);
            return Ok(());
        }
        let mut ip = self.word(frame.sp)?;
        if built == whole || !self.is_return_address(ip) {
            let method = self.stack.word(frame.bp.wrapping_sub(24)).unwrap_or(0);
            if built == whole
                || method == leaf[METHOD]
                || !self.is_return_address(leaf[RETURN_ADDRESS])
            {
                return self.step_interpreted(frame, 0);
            }
            ip = leaf[RETURN_ADDRESS];
        }
        self.note_method(leaf[METHOD], BEGINS, 0)?;
        if sp.wrapping_sub(frame.sp) > FRAME_BYTES {
            sp = frame.sp.wrapping_add(8);
        }
        return_to(frame, sp, ip, frame.bp);
        Ok(())
    }

    /// Returns the state of the frame of interrupted code, which enters at `entry`.
    fn interrupted_frame(&self, entry: u64, ip: u64) -> State {
        if ip <= entry {
            return State::NoFrame;
        }
        let distance = ip - entry;
        if distance < PROLOGUE_BYTES {
            let code = Code::new(self.memory.bytes(entry, PROLOGUE_BYTES as usize));
            let state = code.frame_at_entry(distance as usize);
            if state != State::Whole {
                return state;
            }
        }
        self.frame_at_exit(ip)
    }

    fn frame_at_exit(&self, ip: u64) -> State {
        let code = Code::new(
            self.memory
                .bytes(ip.wrapping_sub(BEFORE), 2 * BEFORE as usize),
        );
        code.frame_at_exit()
    }

    /// Steps through a frame of this many bytes. Code may have pushed some words for a short time,
    /// so the return address may be higher.
    fn step_by_size(&mut self, frame: &mut CodeFrame, bytes: u64) -> Result<(), End> {
        let end = frame.sp.wrapping_add(bytes);
        if !(16..=FRAME_BYTES).contains(&bytes) {
            return Err(End::Broken);
        }
        if !frame.is_exact {
            return self.return_above(frame, end.wrapping_sub(16));
        }
        for index in 0..u64::from(limits::HOTSPOT_PUSHED_WORDS.0) {
            let above = end.wrapping_add(8 * index);
            let ip = self.word(above.wrapping_sub(8))?;
            if self.is_return_address(ip) {
                let bp = self.word(above.wrapping_sub(16))?;
                return_to(frame, above, ip, bp);
                return Ok(());
            }
        }
        Err(End::Broken)
    }

    /// Steps through a frame of compiled code.
    fn step_compiled(&mut self, frame: &mut CodeFrame, blob: u64) -> Result<(), End> {
        let layout = &self.machine.layout;
        let bytes = i64::from(self.field(blob, layout.frame_size)? as i32).cast_unsigned();
        let bytes = bytes.wrapping_mul(8);
        let code = self.address(blob, layout.code_begin)?;
        let mut ip = frame.ip;
        if !frame.is_exact
            && (ip == self.address(blob, layout.deoptimize)?
                || ip == self.address(blob, layout.deoptimize_handle)?)
        {
            let original = self.field(blob, layout.original_pc)? as u32;
            ip = self.word(frame.sp.wrapping_add(original.into()))?;
        }
        let distance = ip.wrapping_sub(code);
        if distance > limits::HOTSPOT_CODE_BYTES.0.into() {
            return Err(End::Broken);
        }
        let compile_id = self.field(blob, layout.compile_id)? as u32;
        self.note(blob, distance as i32, compile_id);
        if bytes == 0 {
            return self.return_at_top(frame);
        }
        if frame.is_exact {
            let entry = self.field(blob, layout.verified_entry)?;
            let is_offset = has_offsets(self.machine, hotspot_flags::HOTSPOT_ENTRY_IS_OFFSET);
            let entry = if is_offset {
                code.wrapping_add(u64::from(entry as u16))
            } else {
                entry
            };
            match self.interrupted_frame(entry, ip) {
                State::NoFrame => return self.return_at_top(frame),
                State::Pushed => return self.return_above(frame, frame.sp),
                State::NotSaved => {
                    let bp = frame.bp;
                    let slot = frame.sp.wrapping_add(bytes).wrapping_sub(16);
                    self.return_above(frame, slot)?;
                    frame.bp = bp;
                    return Ok(());
                }
                State::Whole => {}
            }
        }
        self.step_by_size(frame, bytes)
    }

    /// Steps through a frame of a stub.
    fn step_stub(&mut self, frame: &mut CodeFrame, blob: u64) -> Result<(), End> {
        let layout = &self.machine.layout;
        let words = self.field(blob, layout.frame_size)? as i32;
        let bytes = 8 * u64::try_from(words).unwrap_or(0);
        let block = blob.wrapping_sub(layout.block_header.into());
        let by_pointer = [layout.deoptimization, layout.uncommon_trap].contains(&block);
        if by_pointer && !frame.is_exact && frame.bp >= frame.sp {
            return self.return_above(frame, frame.bp);
        }
        if frame.is_exact {
            let state = if bytes > 0 {
                self.interrupted_frame(self.address(blob, layout.code_begin)?, frame.ip)
            } else {
                self.frame_at_exit(frame.ip)
            };
            match state {
                State::NoFrame => return self.return_at_top(frame),
                State::Pushed => return self.return_above(frame, frame.sp),
                State::NotSaved | State::Whole => {}
            }
        }
        if bytes > 0 {
            return self.step_by_size(frame, bytes);
        }
        if frame.is_exact && self.returns_from_top(frame.sp) {
            return self.return_at_top(frame);
        }
        let distance = frame.bp.wrapping_sub(frame.sp);
        if frame.bp.is_multiple_of(8) && distance < limits::HOTSPOT_STUB_BYTES.0.into() {
            let above = self.stack.word(frame.bp.wrapping_add(8));
            if above.is_some_and(|address| self.is_return_address(address)) {
                return self.return_above(frame, frame.bp);
            }
        }
        for index in 0..STUB_WORDS as u64 {
            let ip = self.word(frame.sp.wrapping_add(8 * index))?;
            if self.is_return_address(ip) {
                return_to(frame, frame.sp.wrapping_add(8 * index + 8), ip, frame.bp);
                return Ok(());
            }
        }
        Err(End::Broken)
    }
}

fn return_to(frame: &mut CodeFrame, sp: u64, ip: u64, bp: u64) {
    *frame = CodeFrame {
        ip,
        sp,
        bp,
        is_exact: false,
    };
}
