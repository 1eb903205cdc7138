//! Code that HotSpot generates, like `bpf/include/arch/x86_64/hotspot_code.h`: registers of its
//! interpreter, calls, and the instructions with which compiled methods begin and end.

use bpf::types::headers::hotspot_code_limits;

/// Registers of code that enters a method, by their DWARF numbers (System V ABI for x86-64, figure
/// 3.36): the return address, the method, and the caller's stack pointer. In a method, the last one
/// has the address of the bytecode.
pub(crate) const RETURN_ADDRESS: usize = 0;
pub(crate) const METHOD: usize = 3;
pub(crate) const SENDER_STACK: usize = 13;

/// Bytes of code before a return address in which the call is searched for.
pub(crate) const CALL_BYTES: usize = hotspot_code_limits::HOTSPOT_CALL_BYTES.0 as usize;
/// Bytes of code in which a method builds its frame.
pub(crate) const PROLOGUE_BYTES: u64 = hotspot_code_limits::HOTSPOT_PROLOGUE_BYTES.0 as u64;
/// Bytes of code that are read before the instruction pointer, and after it.
pub(crate) const BEFORE: u64 = hotspot_code_limits::HOTSPOT_BEFORE.0 as u64;

/// Returns whether the last instruction of `code`, which is before a return address, is a call: E8
/// with 4 bytes, or FF /2 with 1 to 6 bytes (Intel 64 and IA-32 Software Developer's Manual, volume
/// 2A).
pub(crate) fn follows_call(code: &[u8; CALL_BYTES]) -> bool {
    let indirect = |at: usize| code[at] == 0xff && code[at + 1] & 0x38 == 0x10;
    code[3] == 0xe8 || [6, 5, 2, 1].into_iter().any(indirect)
}

/// State of the frame in a method's first and last instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The return address is at the stack pointer.
    NoFrame,
    /// The frame pointer is at the stack pointer, and the return address is above it.
    Pushed,
    /// The frame is whole, but the frame pointer still has the caller's value.
    NotSaved,
    Whole,
}

/// Instructions. Bytes beyond the end are 0.
pub(crate) struct Code(Vec<u8>);

impl Code {
    pub(crate) fn new(bytes: Vec<u8>) -> Code {
        Code(bytes)
    }

    fn byte(&self, at: usize) -> u8 {
        self.0.get(at).copied().unwrap_or(0)
    }

    fn starts(&self, at: usize, bytes: &[u8]) -> bool {
        (at..).zip(bytes).all(|(at, byte)| self.byte(at) == *byte)
    }

    /// Returns the state of the frame at `distance` bytes from the entry, where the code begins.
    /// The forms of the first instructions are those of `MacroAssembler::verified_entry` and
    /// `C1_MacroAssembler::build_frame`.
    pub(crate) fn frame_at_entry(&self, distance: usize) -> State {
        let mut at = 0;
        for _ in 0..hotspot_code_limits::HOTSPOT_PROLOGUE.0 {
            at += match () {
                // mov %eax, DISPLACEMENT(%rsp): touches the end of the stack
                () if self.starts(at, &[0x89, 0x84, 0x24]) => 7,
                () if self.starts(at, &[0x0f, 0x1f, 0x44, 0x00]) => 5,
                () if self.starts(at, &[0x66, 0x66, 0x90]) => 3,
                () if self.starts(at, &[0x0f, 0x1f, 0x40, 0x00]) => 4,
                () if self.starts(at, &[0x90]) => 1,
                () => break,
            };
        }
        if distance <= at {
            return State::NoFrame;
        }
        let short = |at| self.starts(at, &[0x48, 0x83, 0xec]);
        let long = |at| self.starts(at, &[0x48, 0x81, 0xec]);
        // push %rbp
        if self.byte(at) == 0x55 {
            at += 1;
            // mov %rsp, %rbp
            if self.starts(at, &[0x48, 0x8b, 0xec]) || self.starts(at, &[0x48, 0x89, 0xe5]) {
                at += 3;
            }
            // sub $IMMEDIATE, %rsp
            at += match () {
                () if short(at) => 4,
                () if long(at) => 7,
                () => 0,
            };
            return if distance < at {
                State::Pushed
            } else {
                State::Whole
            };
        }
        at += match () {
            () if short(at) => 4,
            () if long(at) => 7,
            () => return State::Whole,
        };
        // mov %rbp, DISPLACEMENT(%rsp)
        at += match () {
            () if self.starts(at, &[0x48, 0x89, 0x6c, 0x24]) => 5,
            () if self.starts(at, &[0x48, 0x89, 0xac, 0x24]) => 8,
            () => 0,
        };
        if distance < at {
            State::NotSaved
        } else {
            State::Whole
        }
    }

    /// Returns the state of the frame by the instructions around the instruction pointer, which is
    /// [`BEFORE`] bytes from the start. Methods end with the frame's removal, a poll for
    /// safepoints, and the return.
    pub(crate) fn frame_at_exit(&self) -> State {
        const AT: usize = BEFORE as usize;
        let last = self.byte(AT - 1);
        let is_jump = |second: u8| self.starts(AT, &[0x0f, second]) && self.byte(AT + 6) == 0xc3;
        let lea = |at| self.starts(at, &[0x4c, 0x8d, 0x15]);
        let store = |at| self.starts(at, &[0x4d, 0x89, 0x97]);
        // pop %rbp
        if self.byte(AT) == 0x5d {
            return State::Pushed;
        }
        let has_left = match self.byte(AT) {
            // ret
            0xc3 | 0xc2 => true,
            // jmp, from the stub of the poll
            0xe9 => store(AT - 7) && lea(AT - 14),
            _ => false,
        };
        let is_over = has_left
            // add $IMMEDIATE, %rsp; pop %rbp
            || last == 0x5d
                && (self.starts(AT - 5, &[0x48, 0x83, 0xc4])
                    || self.starts(AT - 8, &[0x48, 0x81, 0xc4]))
            // leave; cmpq $0, DISPLACEMENT(%r15), which asks for pending exceptions
            || last == 0xc9
                && (self.starts(AT, &[0x49, 0x83, 0x7f]) || self.starts(AT, &[0x49, 0x83, 0xbf]))
            // ja or jne to the stub of the poll, or of pending exceptions; ret
            || is_jump(0x87)
            || is_jump(0x85)
            // test %eax, (%r10); ret
            || self.starts(AT, &[0x41, 0x85, 0x02, 0xc3])
            // test %eax, DISPLACEMENT(%rip); ret
            || self.starts(AT, &[0x85, 0x05]) && self.byte(AT + 6) == 0xc3
            // lea DISPLACEMENT(%rip), %r10; mov %r10, DISPLACEMENT(%r15); jmp
            || lea(AT) && store(AT + 7)
            || store(AT) && lea(AT - 7) && self.byte(AT + 7) == 0xe9;
        if is_over {
            State::NoFrame
        } else {
            State::Whole
        }
    }
}
