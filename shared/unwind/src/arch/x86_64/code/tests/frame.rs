//! Tests of the stack pointer and the frame pointer.

use super::*;

#[test]
fn stack_pointer_moves() {
    // push %rbx; sub $16, %rsp; pushf; popf; lea 16(%rsp), %rsp; pop %rbx; ret
    let code = b"\x53\x48\x83\xec\x10\x9c\x9d\x48\x8d\x64\x24\x10\x5b\xc3";
    let expected = [
        (0, stack(8)),
        (1, stack(16)),
        (5, stack(32)),
        (6, stack(40)),
        (7, stack(32)),
        (12, stack(16)),
        (13, stack(8)),
        (14, Rule::NONE),
    ];
    assert_eq!(rows(code), expected);
}

#[test]
fn frame_pointer_saved_and_used() {
    // push %rbp; mov %rsp, %rbp; and $-32, %rsp; call *%rax; leave; ret
    let code = b"\x55\x48\x89\xe5\x48\x83\xe4\xe0\xff\xd0\xc9\xc3";
    let expected = [
        (0, stack(8)),
        (1, saved(stack(16), -16)),
        (8, saved(Rule::at(cfa::FRAME_POINTER, 16), -16)),
        (11, stack(8)),
        (12, Rule::NONE),
    ];
    assert_eq!(rows(code), expected);
}

#[test]
fn frame_pointer_overwritten() {
    // xor %ebp, %ebp; ret
    let expected = [(0, stack(8)), (2, lost(stack(8))), (3, Rule::NONE)];
    assert_eq!(rows(b"\x31\xed\xc3"), expected);
}
