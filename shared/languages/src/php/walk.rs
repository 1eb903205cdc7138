//! Reads the PHP frames of a blocked thread, like `bpf/include/languages/php.h`.

use unwind::Memory;

use super::Layout;
use crate::chain::{Chain, End, Frame, hash_word};
use crate::interleave::{Link, activations};

/// Offsets in `struct _zend_execute_data` (Zend/zend_compile.h).
const INSTRUCTION: u64 = 0;
const FUNCTION: u64 = 24;
const FLAGS: u64 = 40;
const CALLER: u64 = 48;
/// `ZEND_CALL_TOP`: the frame begins an activation of `execute_ex()`.
const BEGINS_ACTIVATION: u64 = 1 << 17;

/// Offsets in `union _zend_function`.
const FUNCTION_FLAGS: u64 = 4;
const NAME: u64 = 8;
const CLASS: u64 = 16;

/// `ZEND_ACC_IMMUTABLE`: the function is in opcache's shared memory.
const IMMUTABLE: u32 = 1 << 7;

/// `sizeof(struct _zend_op)`.
pub(super) const INSTRUCTION_SIZE: u64 = 32;

/// Offset of the hash in `struct _zend_string`.
const TEXT_HASH: u64 = 8;

/// Kind of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Function in C: `ZEND_INTERNAL_FUNCTION`.
    Internal,
    /// Function in PHP, or a file: `ZEND_USER_FUNCTION`.
    User,
    /// Text that `eval` runs: `ZEND_EVAL_CODE`.
    Eval,
}

impl Kind {
    pub(super) fn from_type(byte: u8) -> Option<Kind> {
        match byte {
            1 => Some(Kind::Internal),
            2 => Some(Kind::User),
            4 => Some(Kind::Eval),
            _ => None,
        }
    }
}

/// Function as frames refer to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) name: u64,
    pub(super) checksum: u32,
    pub(super) opcodes: u64,
    pub(super) count: u32,
}

impl Header {
    /// Returns the number of the instruction at an address, or -1 if the function has none there.
    fn instruction(&self, address: u64) -> i32 {
        let offset = address.wrapping_sub(self.opcodes);
        let number = offset / INSTRUCTION_SIZE;
        let is_there = offset.is_multiple_of(INSTRUCTION_SIZE) && number < u64::from(self.count);
        if is_there {
            i32::try_from(number).unwrap_or(-1)
        } else {
            -1
        }
    }
}

/// Reads a function. `word` returns the word at an address, which may have any alignment.
pub(super) fn header(
    mut word: impl FnMut(u64) -> Option<u64>,
    layout: &Layout,
    has_requests: bool,
    address: u64,
) -> Result<Header, End> {
    let mut field = |offset: u64| word(address.wrapping_add(offset)).ok_or(End::ReadFailed);
    let first = field(0)?;
    let kind = Kind::from_type(first as u8).ok_or(End::Broken)?;
    let name = field(NAME)?;
    let mut checksum = hash_word(u64::from(first as u8), name);
    checksum = hash_word(checksum, field(CLASS)?);
    let (mut opcodes, mut count) = (0, 0);
    if kind != Kind::Internal {
        let flags = field(FUNCTION_FLAGS)? as u32;
        let file_at = u64::from(layout.function_file);
        let file = field(file_at)?;
        let lines = field(file_at + 8)?;
        opcodes = field(layout.function_opcodes.into())?;
        count = field(layout.function_count.into())? as u32;
        for word in [file, lines, opcodes, u64::from(count)] {
            checksum = hash_word(checksum, word);
        }
        if has_requests && flags & IMMUTABLE == 0 {
            for text in [name, file] {
                let hash = match text {
                    0 => 0,
                    text => word(text.wrapping_add(TEXT_HASH)).ok_or(End::ReadFailed)?,
                };
                checksum = hash_word(checksum, hash);
            }
        }
    }
    Ok(Header {
        kind,
        name,
        checksum: (checksum >> 32) as u32,
        opcodes,
        count,
    })
}

/// Reads the frames of a process's first thread, but at most `most` links. `globals` is the address
/// of the interpreter's `executor_globals`. `has_requests` is true if functions end with a request.
pub fn walk(
    memory: &mut (impl Memory + ?Sized),
    layout: &Layout,
    has_requests: bool,
    globals: u64,
    most: usize,
) -> Chain {
    let mut links = Vec::new();
    let end = match word(memory, globals.wrapping_add(layout.current.into())) {
        None | Some(0) => End::NoThread,
        Some(frame) => {
            let mut frame = frame;
            // Frames without a function leave no links, so a ring of them needs a bound.
            let steps = (0..2 * most).map(|_| {
                let at = frame;
                step(memory, layout, has_requests, at, most, &mut links).map(|next| frame = next)
            });
            let mut ends = steps.filter_map(Result::err);
            ends.next().unwrap_or(End::TooDeep)
        }
    };
    Chain {
        links,
        end,
        interrupted: None,
    }
}

/// Returns the word at an address, which may lie in two pages.
fn word(memory: &mut (impl Memory + ?Sized), address: u64) -> Option<u64> {
    let shift = address % 8 * 8;
    let low = memory.word(address & !7)?;
    if shift == 0 {
        return Some(low);
    }
    // The bytes that a caller needs may all be in the first word.
    let high = memory.word((address & !7).wrapping_add(8)).unwrap_or(0);
    Some(low >> shift | high << (64 - shift))
}

/// Adds a frame, and returns its caller. Returns an error at the end of the chain.
fn step(
    memory: &mut (impl Memory + ?Sized),
    layout: &Layout,
    has_requests: bool,
    frame: u64,
    most: usize,
    links: &mut Vec<Link<Frame>>,
) -> Result<u64, End> {
    if frame == 0 {
        return Err(End::Whole);
    }
    if !frame.is_multiple_of(8) {
        return Err(End::Broken);
    }
    let mut field = |offset: u64| word(memory, frame.wrapping_add(offset)).ok_or(End::ReadFailed);
    let caller = field(CALLER)?;
    let function = field(FUNCTION)?;
    let instruction = field(INSTRUCTION)?;
    let flags = field(FLAGS)?;
    if function == 0 {
        return Ok(caller);
    }
    if !function.is_multiple_of(8) {
        return Err(End::Broken);
    }
    let header = header(|at| word(memory, at), layout, has_requests, function)?;
    let mut push = |link| {
        if links.len() >= most {
            return Err(End::TooDeep);
        }
        links.push(link);
        Ok(())
    };
    let of_function = |instruction| {
        Link::Frame(Frame {
            code: function,
            instruction,
            checksum: header.checksum,
            machine_code: 0,
        })
    };
    match header.kind {
        // The frame at the bottom of a fiber's stack has no name.
        Kind::Internal if header.name == 0 => push(Link::Anchor(activations::OTHER_STACK))?,
        Kind::Internal => push(of_function(0))?,
        Kind::User | Kind::Eval => {
            push(of_function(header.instruction(instruction)))?;
            if flags & BEGINS_ACTIVATION != 0 {
                push(Link::Anchor(activations::ACTIVATION))?;
            }
        }
    }
    Ok(caller)
}
