//! The stack pointer and the frame pointer.

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
fn the_stack_pointer_may_move_by_two_or_anywhere() {
    // push %ax; pop %ax; ret
    let expected = [
        (0, stack(8)),
        (2, stack(10)),
        (4, stack(8)),
        (5, Rule::NONE),
    ];
    assert_eq!(rows(b"\x66\x50\x66\x58\xc3"), expected);
    // push %rbx; pop %rsp; jmp *%rax
    let expected = [(0, stack(8)), (1, stack(16)), (2, Rule::NONE)];
    assert_eq!(rows(b"\x53\x5c\xff\xe0"), expected);
    // Nested: enter $32, $1; ud2
    let expected = [(0, stack(8)), (4, lost(stack(56))), (6, Rule::NONE)];
    assert_eq!(rows(b"\xc8\x20\x00\x01\x0f\x0b"), expected);
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
fn the_callers_frame_pointer_is_where_it_was_saved_first() {
    // push %rbp; mov %rbp, -8(%rsp); pop %rbp; ret
    let expected = [
        (0, stack(8)),
        (1, saved(stack(16), -16)),
        (7, stack(8)),
        (8, Rule::NONE),
    ];
    assert_eq!(rows(b"\x55\x48\x89\x6c\x24\xf8\x5d\xc3"), expected);
    // Nobody knows where: sub $24, %rsp; mov %rbp, 8(%rsp, %rax); ud2
    let expected = [(0, stack(8)), (4, stack(32)), (11, Rule::NONE)];
    let code = b"\x48\x83\xec\x18\x48\x89\x6c\x04\x08\x0f\x0b";
    assert_eq!(rows(code), expected);
    // sub $24, %rsp; mov %rbp, %fs:8(%rsp); ud2
    let expected = [(0, stack(8)), (4, stack(32)), (12, Rule::NONE)];
    let code = b"\x48\x83\xec\x18\x64\x48\x89\x6c\x24\x08\x0f\x0b";
    assert_eq!(rows(code), expected);
}

#[test]
fn a_frame_pointer_read_from_elsewhere_is_another() {
    // sub $24, %rsp; mov 8(%rsp), %rbp; add $24, %rsp; ret
    let expected = [
        (0, stack(8)),
        (4, stack(32)),
        (9, lost(stack(32))),
        (13, lost(stack(8))),
        (14, Rule::NONE),
    ];
    let code = b"\x48\x83\xec\x18\x48\x8b\x6c\x24\x08\x48\x83\xc4\x18\xc3";
    assert_eq!(rows(code), expected);
    // mov %rax, %rbp; ret
    let expected = [(0, stack(8)), (3, lost(stack(8))), (4, Rule::NONE)];
    assert_eq!(rows(b"\x48\x89\xc5\xc3"), expected);
    // push %rax; pop %rbp; ret
    let expected = [
        (0, stack(8)),
        (1, stack(16)),
        (2, lost(stack(8))),
        (3, Rule::NONE),
    ];
    assert_eq!(rows(b"\x50\x5d\xc3"), expected);
}

#[test]
fn enter_makes_a_frame() {
    // enter $32, $0; leave; ret
    let code = b"\xc8\x20\x00\x00\xc9\xc3";
    let expected = [
        (0, stack(8)),
        (4, saved(stack(48), -16)),
        (5, stack(8)),
        (6, Rule::NONE),
    ];
    assert_eq!(rows(code), expected);
}

#[test]
fn frame_pointer_addressed_by_the_stack_pointer() {
    // sub $24, %rsp; mov %rbp, 8(%rsp); lea 4(%rsp), %rbp; and $-16, %rsp;
    // lea -4(%rbp), %rsp; mov 8(%rsp), %rbp; add $24, %rsp; ret
    let code = b"\x48\x83\xec\x18\x48\x89\x6c\x24\x08\x48\x8d\x6c\x24\x04\
        \x48\x83\xe4\xf0\x48\x8d\x65\xfc\x48\x8b\x6c\x24\x08\x48\x83\xc4\x18\xc3";
    let expected = [
        (0, stack(8)),
        (4, stack(32)),
        (9, saved(stack(32), -24)),
        (18, saved(Rule::at(cfa::FRAME_POINTER, 28), -24)),
        (22, saved(stack(32), -24)),
        (31, stack(8)),
        (32, Rule::NONE),
    ];
    assert_eq!(rows(code), expected);
}

#[test]
fn frame_pointer_overwritten() {
    // xor %ebp, %ebp; ret
    let expected = [(0, stack(8)), (2, lost(stack(8))), (3, Rule::NONE)];
    assert_eq!(rows(b"\x31\xed\xc3"), expected);
}
