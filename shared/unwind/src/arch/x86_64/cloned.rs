//! Behind the system call with which a thread starts another.
//!
//! There glibc ends the description of clone() and clone3(), as the new thread returns
//! from it, too, and has no caller. Where the new thread goes a way of its own
//! another begins (`sysdeps/unix/sysv/linux/x86_64/clone.S`, `clone3.S`).

use std::ops::Range;

use crate::rule::{Rule, cfa};

/// Bytes from the one to the other that are accepted: 10, or 14 with a longer jump.
const LONGEST: u64 = 16;
/// `syscall; test %rax,%rax`
const SYSTEM_CALL: [u8; 5] = [0x0f, 0x05, 0x48, 0x85, 0xc0];

/// The rule from `end`, up to where `last` holds, to `start`, where code begins that
/// has no caller, if a thread is started there. `code` reads what lies at addresses.
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
