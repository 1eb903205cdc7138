//! Rules that lead from a frame to its caller. The unwind in BPF reads the same bytes (`struct
//! unwind_rule` of `bpf/include/stacks/unwind_tables.h`).

/// Rule that finds the canonical frame address (CFA) and the return address of a frame (DWARF 5,
/// section 6.4). The CFA is the stack pointer after the return. The return address is one word
/// below the CFA (CFA - 8), unless a constant in [`cfa`] says otherwise.
///
/// A rule has 8 bytes, because a table has up to 65,535 rules and every frame reads one.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// Base of the CFA, one of the constants in [`cfa`].
    pub cfa: u8,
    /// Place of the caller's frame pointer, one of the constants in [`frame_pointer`].
    pub frame_pointer: u8,
    /// Distance from the place that `frame_pointer` names, in bytes.
    pub frame_pointer_offset: i16,
    /// Distance from the base that `cfa` names, in bytes. Some constants in [`cfa`] define another
    /// meaning.
    pub cfa_offset: i32,
}

/// Values of [`Rule::cfa`].
pub mod cfa {
    /// No rule is known, because no table describes the code.
    pub const NONE: u8 = 0;
    /// CFA = stack pointer + `cfa_offset`.
    pub const STACK_POINTER: u8 = 1;
    /// CFA = frame pointer + `cfa_offset`.
    pub const FRAME_POINTER: u8 = 2;
    /// Entry of the procedure linkage table: CFA = stack pointer + 8, and 8 more once the low four
    /// bits of the address reach `cfa_offset`.
    pub const PLT: u8 = 3;
    /// Signal frame: the kernel's `struct sigcontext` is at the stack pointer + `cfa_offset` and
    /// contains all registers. The program counter in it is exact.
    pub const SIGNAL_FRAME: u8 = 4;
    /// CFA = the word at (stack pointer + low half of `cfa_offset`) + high half of `cfa_offset`.
    /// Both halves are signed 16-bit numbers (see [`super::Rule::with_halves`]).
    pub const WORD_AT_STACK_POINTER: u8 = 5;
    /// CFA = the word at (frame pointer + low half of `cfa_offset`) + high half of `cfa_offset`.
    pub const WORD_AT_FRAME_POINTER: u8 = 6;
    /// The frame has no caller, because the thread or its stack starts here.
    pub const ROOT: u8 = 7;
    /// CFA = frame pointer + `cfa_offset`. It may be on another stack.
    pub const SWITCHED_STACK: u8 = 8;
    /// Code after the system call that starts a thread. In the new thread the call returns 0, and
    /// the frame has no caller. In the other thread, CFA = stack pointer + `cfa_offset`. Only at a
    /// leaf is it known which thread runs.
    pub const CLONED: u8 = 9;
    /// CFA = stack pointer + `cfa_offset`, with the return address in the link register, on
    /// architectures that have one. The register is known at a leaf, and for code that a signal
    /// interrupted.
    pub const LINK_REGISTER: u8 = 10;
    /// This constant plus n: CFA = DWARF register n (0 to 15) + `cfa_offset`. The register is known
    /// only at a leaf.
    pub const REGISTER: u8 = 16;
    /// This constant plus n: CFA = stack pointer + `cfa_offset`, with the return address in DWARF
    /// register n (vfork). The register is known only at a leaf.
    pub const RETURN_IN_REGISTER: u8 = 32;
    /// The code is overwriting its frame, so neither the stack pointer nor the frame pointer leads
    /// to the caller.
    pub const HANDED_OVER: u8 = 48;
}

/// Values of [`Rule::frame_pointer`].
pub mod frame_pointer {
    /// The register still has the caller's frame pointer.
    pub const SAME: u8 = 0;
    /// The caller's frame pointer is saved at the CFA + `frame_pointer_offset`.
    pub const AT_CFA: u8 = 1;
    /// The caller's frame pointer is saved at the frame pointer + `frame_pointer_offset`.
    pub const AT_FRAME_POINTER: u8 = 2;
    /// The caller's frame pointer cannot be found.
    pub const LOST: u8 = 3;
}

impl Rule {
    /// Rule of code that no table describes.
    pub const NONE: Rule = Rule::at(cfa::NONE, 0);
    /// Rule of a frame that has no caller.
    pub const ROOT: Rule = Rule::at(cfa::ROOT, 0);

    /// Returns a rule for code that has not changed the frame pointer.
    pub const fn at(cfa: u8, cfa_offset: i32) -> Rule {
        Rule {
            cfa,
            frame_pointer: frame_pointer::SAME,
            frame_pointer_offset: 0,
            cfa_offset,
        }
    }

    /// Packs the two offsets of a rule that reads a word from memory. `offset` is that of the word,
    /// and `addend` is added to the word.
    pub const fn with_halves(offset: i16, addend: i16) -> i32 {
        (addend as i32) << 16 | (offset as u16 as i32)
    }
}
