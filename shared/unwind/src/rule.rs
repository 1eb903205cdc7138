//! How to get from a frame to its caller: one rule, the same bytes that the
//! BPF walker reads (`struct unwind_rule` of `bpf/include/stacks/unwind_tables.h`).

/// How to find the canonical frame address (CFA), which is the stack pointer
/// after the return, and with it the return address, which is one word below (CFA - 8)
/// unless said otherwise. DWARF 5, section 6.4.
///
/// In 8 bytes, since there are up to 65,535 of them and every frame reads one.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// Where the CFA is: one of the constants in [`cfa`].
    pub cfa: u8,
    /// Where the caller's frame pointer is: one of those in [`frame_pointer`].
    pub frame_pointer: u8,
    /// Bytes, from what `frame_pointer` names.
    pub frame_pointer_offset: i16,
    /// Bytes, from what `cfa` names; other uses are said there.
    pub cfa_offset: i32,
}

/// Values of [`Rule::cfa`].
pub mod cfa {
    /// Nothing is known here: no code that the tables describe.
    pub const NONE: u8 = 0;
    /// The stack pointer + `cfa_offset`.
    pub const STACK_POINTER: u8 = 1;
    /// The frame pointer + `cfa_offset`.
    pub const FRAME_POINTER: u8 = 2;
    /// The stack pointer + 8, and 8 more once the low four bits of the address
    /// reach `cfa_offset`: an entry of the procedure linkage table.
    pub const PLT: u8 = 3;
    /// A signal frame: the kernel's `struct sigcontext` is at the stack pointer +
    /// `cfa_offset` and has all registers, the next pc being exact.
    pub const SIGNAL_FRAME: u8 = 4;
    /// The word at the stack pointer + the low half of `cfa_offset`, then plus
    /// its high half (both signed 16 bits; see [`super::Rule::with_halves`]).
    pub const WORD_AT_STACK_POINTER: u8 = 5;
    /// The word at the frame pointer + the low half of `cfa_offset`, then plus
    /// its high half.
    pub const WORD_AT_FRAME_POINTER: u8 = 6;
    /// There is no caller: the thread, or its stack, starts here.
    pub const ROOT: u8 = 7;
    /// The frame pointer + `cfa_offset`, which may be on another stack.
    pub const SWITCHED_STACK: u8 = 8;
    /// Behind the system call that starts a thread. The new one, for which it returns 0,
    /// has no caller; in the other the CFA is the stack pointer + `cfa_offset`. Which
    /// it is is known at a leaf only.
    pub const CLONED: u8 = 9;
    /// The stack pointer + `cfa_offset`, with the return address in the link register of
    /// architectures that have one. Known at a leaf, and of code that a signal interrupted.
    pub const LINK_REGISTER: u8 = 10;
    /// This plus n: the DWARF register n (0 to 15) + `cfa_offset`. Known at a
    /// leaf only.
    pub const REGISTER: u8 = 16;
    /// This plus n: the stack pointer + `cfa_offset`, with the return address in
    /// DWARF register n. Known at a leaf only (vfork).
    pub const RETURN_IN_REGISTER: u8 = 32;
    /// Nothing leads to the caller, nor does the frame pointer: the frame is
    /// being written over.
    pub const HANDED_OVER: u8 = 48;
}

/// Values of [`Rule::frame_pointer`].
pub mod frame_pointer {
    /// It has not changed.
    pub const SAME: u8 = 0;
    /// Saved at the CFA + `frame_pointer_offset`.
    pub const AT_CFA: u8 = 1;
    /// Saved at the frame pointer + `frame_pointer_offset`.
    pub const AT_FRAME_POINTER: u8 = 2;
    /// Not to be found.
    pub const LOST: u8 = 3;
}

impl Rule {
    /// Nothing is known.
    pub const NONE: Rule = Rule::at(cfa::NONE, 0);
    /// There is no caller.
    pub const ROOT: Rule = Rule::at(cfa::ROOT, 0);

    /// A rule that keeps the frame pointer.
    pub const fn at(cfa: u8, cfa_offset: i32) -> Rule {
        Rule {
            cfa,
            frame_pointer: frame_pointer::SAME,
            frame_pointer_offset: 0,
            cfa_offset,
        }
    }

    /// Packs the two numbers of the rules with a word read from memory.
    pub const fn with_halves(offset: i16, addend: i16) -> i32 {
        (addend as i32) << 16 | (offset as u16 as i32)
    }
}
