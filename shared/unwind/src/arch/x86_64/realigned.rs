//! Ends of functions that realign the stack.
//!
//! GCC keeps the CFA of such a function in r10 or r13, and saves the caller's frame pointer at the
//! address in the frame pointer. The call frame information says that it stays there up to the
//! function's end. In fact `pop %rbp` restores it two instructions earlier.

use std::ops::Range;

use crate::rule::{Rule, cfa, frame_pointer};

/// Rule at a return instruction.
const AT_RETURN: Rule = Rule::at(cfa::STACK_POINTER, 8);
/// `pop %rbp; lea -8(%r10), %rsp` and `pop %rbp; lea -8(%r13), %rsp`.
const RESTORES: [[u8; 5]; 2] = [
    [0x5d, 0x49, 0x8d, 0x62, 0xf8],
    [0x5d, 0x49, 0x8d, 0x65, 0xf8],
];

/// Corrects the rows of a function, from the instruction after the restore of the frame pointer.
/// `code` reads the bytes at addresses.
pub(super) fn restore_frame_pointer(
    rows: &mut Vec<(u64, Rule)>,
    code: &mut impl FnMut(Range<u64>) -> Option<Vec<u8>>,
) {
    let mut restored = Vec::new();
    for index in 1..rows.len() {
        let (address, rule) = rows[index];
        let is_return = (rule.cfa, rule.cfa_offset) == (AT_RETURN.cfa, AT_RETURN.cfa_offset);
        if !is_return || rule.frame_pointer != frame_pointer::AT_FRAME_POINTER {
            continue;
        }
        rows[index].1 = AT_RETURN;
        let Some(pop) = address.checked_sub(RESTORES[0].len() as u64) else {
            continue;
        };
        let (before, rule) = rows[index - 1];
        if before <= pop
            && code(pop..address).is_some_and(|code| RESTORES.iter().any(|one| *one == *code))
        {
            let same = Rule {
                frame_pointer: frame_pointer::SAME,
                frame_pointer_offset: 0,
                ..rule
            };
            restored.push((pop + 1, same));
        }
    }
    rows.extend(restored);
    rows.sort_by_key(|row| row.0);
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAVED: Rule = Rule {
        frame_pointer: frame_pointer::AT_FRAME_POINTER,
        ..Rule::at(cfa::REGISTER + 10, 0)
    };
    const AT_RETURN_SAVED: Rule = Rule {
        frame_pointer: frame_pointer::AT_FRAME_POINTER,
        ..AT_RETURN
    };

    fn corrected(code: &[u8]) -> Vec<(u64, Rule)> {
        let mut rows = vec![(0, AT_RETURN), (4, SAVED), (16, AT_RETURN_SAVED)];
        let mut read = |range: Range<u64>| {
            assert_eq!(range, 11..16);
            Some(code.to_vec())
        };
        restore_frame_pointer(&mut rows, &mut read);
        rows
    }

    #[test]
    fn a_popped_frame_pointer_is_the_callers() {
        let restored = Rule {
            frame_pointer: frame_pointer::SAME,
            ..SAVED
        };
        let expected = [(0, AT_RETURN), (4, SAVED), (12, restored), (16, AT_RETURN)];
        assert_eq!(corrected(&RESTORES[0]), expected);
        assert_eq!(corrected(&RESTORES[1]), expected);
        // With other code, the frame pointer stays saved up to the return.
        let expected = [(0, AT_RETURN), (4, SAVED), (16, AT_RETURN)];
        assert_eq!(corrected(&[0x90; 5]), expected);
    }
}
