//! Code after the system call with which a thread starts another thread.
//!
//! The call frame information of glibc's clone() and clone3() ends at this code. The new thread
//! also returns from the system call, but has no caller. Another description begins with the code
//! that only the new thread runs (`sysdeps/unix/sysv/linux/x86_64/clone.S`, `clone3.S`).

use std::ops::Range;

use crate::rule::{Rule, cfa};

/// Maximum number of bytes between the two descriptions. There are 10, or 14 with a longer jump.
const LONGEST: u64 = 16;
/// `syscall; test %rax,%rax`
const SYSTEM_CALL: [u8; 5] = [0x0f, 0x05, 0x48, 0x85, 0xc0];

/// Returns the rule of the code from `end` to `start`, if this code starts a thread. `last` is the
/// rule before `end`. At `start`, code without a caller begins. `code` reads the bytes at
/// addresses.
pub(crate) fn rule_of_clone(
    (end, last): (u64, Rule),
    start: u64,
    code: &mut impl FnMut(Range<u64>) -> Option<Vec<u8>>,
) -> Option<Rule> {
    let is_near = start.checked_sub(end)? <= LONGEST;
    let is_cloned =
        last.cfa == cfa::STACK_POINTER && is_near && code(end..start)?.starts_with(&SYSTEM_CALL);
    is_cloned.then_some(Rule {
        cfa: cfa::CLONED,
        ..last
    })
}
