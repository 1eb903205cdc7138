use std::ops::Range;

use super::analyse;
use crate::{Rule, cfa, frame_pointer};

const BASE: u64 = 0x40_1000;

/// Rows of one function, by offset.
fn rows(code: &[u8]) -> Vec<(u64, Rule)> {
    rows_of(code, &[0])
}

/// Rows of functions that start at these offsets.
fn rows_of(code: &[u8], starts: &[u64]) -> Vec<(u64, Rule)> {
    let functions: Vec<_> = starts
        .iter()
        .map(|&start| BASE + start..BASE + start)
        .collect();
    let rows = analyse(code, BASE, &functions, &[]);
    rows.into_iter()
        .map(|(address, rule)| (address - BASE, rule))
        .collect()
}

fn stack(offset: i32) -> Rule {
    Rule::at(cfa::STACK_POINTER, offset)
}

/// `rule` with the caller's frame pointer saved at the CFA + `offset`.
fn saved(rule: Rule, offset: i16) -> Rule {
    Rule {
        frame_pointer: frame_pointer::AT_CFA,
        frame_pointer_offset: offset,
        ..rule
    }
}

fn lost(rule: Rule) -> Rule {
    Rule {
        frame_pointer: frame_pointer::LOST,
        ..rule
    }
}

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

#[test]
fn jumps_are_followed() {
    // push %rbx; test %eax, %eax; je 8; pop %rbx; ret; int3; 8: jmp 5
    let code = b"\x53\x85\xc0\x74\x03\x5b\xc3\xcc\xeb\xfb";
    let expected = [
        (0, stack(8)),
        (1, stack(16)),
        (6, stack(8)),
        (7, Rule::NONE),
        (8, stack(16)),
        (10, Rule::NONE),
    ];
    assert_eq!(rows(code), expected);
}

#[test]
fn paths_that_disagree_leave_nothing() {
    // test %eax, %eax; je 5; push %rax; 5: nop; jmp *8(%rdi)
    let code = b"\x85\xc0\x74\x01\x50\x90\xff\x67\x08";
    assert_eq!(rows(code), [(0, stack(8)), (5, Rule::NONE)]);
    // The same with a frame pointer: push %rbp; mov %rsp, %rbp; …; leave; ret
    let code = b"\x55\x48\x89\xe5\x85\xc0\x74\x01\x50\x90\xc9\xc3";
    let expected = [
        (0, stack(8)),
        (1, saved(stack(16), -16)),
        (9, saved(Rule::at(cfa::FRAME_POINTER, 16), -16)),
        (11, stack(8)),
        (12, Rule::NONE),
    ];
    assert_eq!(rows(code), expected);
}

#[test]
fn return_that_cannot_be() {
    // push %rax; ret
    assert_eq!(rows(b"\x50\xc3"), []);
    // It is no matter of the function after it: ret
    assert_eq!(
        rows_of(b"\x50\xc3\xc3", &[0, 2]),
        [(2, stack(8)), (3, Rule::NONE)]
    );
}

#[test]
fn call_that_does_not_return() {
    // sub $8, %rsp; test %eax, %eax; je 14; add $8, %rsp; jmp 19;
    // 14: call 0x100; 19: ret
    let code = b"\x48\x83\xec\x08\x85\xc0\x74\x06\x48\x83\xc4\x08\xeb\x05\
        \xe8\xed\x00\x00\x00\xc3";
    let expected = [
        (0, stack(8)),
        (4, stack(16)),
        (12, stack(8)),
        (14, stack(16)),
        (19, stack(8)),
        (20, Rule::NONE),
    ];
    assert_eq!(rows(code), expected);
}

#[test]
fn what_follows_a_call_that_does_not_return_is_looked_at_again() {
    // sub $8, %rsp; test %eax, %eax; je 15; call 0x100; 13: nop; ret;
    // 15: add $8, %rsp; jmp 13
    let code = b"\x48\x83\xec\x08\x85\xc0\x74\x07\xe8\xf3\x00\x00\x00\x90\xc3\
        \x48\x83\xc4\x08\xeb\xf8";
    let expected = [
        (0, stack(8)),
        (4, stack(16)),
        (13, stack(8)),
        (15, stack(16)),
        (19, stack(8)),
        (21, Rule::NONE),
    ];
    assert_eq!(rows(code), expected);
}

#[test]
fn call_to_what_follows_pushes() {
    // call 5; 5: pop %rax; ret
    let expected = [
        (0, stack(8)),
        (5, stack(16)),
        (6, stack(8)),
        (7, Rule::NONE),
    ];
    assert_eq!(rows(b"\xe8\x00\x00\x00\x00\x58\xc3"), expected);
}

#[test]
fn table_jump() {
    // push %rbx; notrack jmp *(%rdi,%rax,8); pop %rbx; ret; nop; pop %rbx; ret
    let code = b"\x53\x3e\xff\x24\xc7\x5b\xc3\x90\x5b\xc3";
    let expected = [
        (0, stack(8)),
        (1, stack(16)),
        (6, stack(8)),
        (8, stack(16)),
        (9, stack(8)),
        (10, Rule::NONE),
    ];
    assert_eq!(rows(code), expected);
    // With what no table can lead to: push %rbx; jmp *%rax; ret
    assert_eq!(
        rows(b"\x53\xff\xe0\xc3"),
        [(0, stack(8)), (1, stack(16)), (3, Rule::NONE)]
    );
    // With what nothing is known about: jmp *%rax; call 0x100
    assert_eq!(
        rows(b"\xff\xe0\xe8\xf9\x00\x00\x00"),
        [(0, stack(8)), (2, Rule::NONE)]
    );
}

#[test]
fn table_jumps_in_several_states() {
    // push %rbx; test %eax, %eax; je 7; jmp *%rax; 7: push %r12; jmp *%rax;
    // pop %rbx; ret; pop %r12; pop %rbx; ret
    let code = b"\x53\x85\xc0\x74\x02\xff\xe0\x41\x54\xff\xe0\x5b\xc3\x41\x5c\x5b\xc3";
    let expected = [
        (0, stack(8)),
        (1, stack(16)),
        (9, stack(24)),
        (11, stack(16)),
        (12, stack(8)),
        (13, stack(24)),
        (15, stack(16)),
        (16, stack(8)),
        (17, Rule::NONE),
    ];
    assert_eq!(rows(code), expected);
    // push %rbx; test %eax, %eax; je 7; jmp *%rax; 7: push %r12; test %eax, %eax;
    // je 15; jmp *%rax; 15: nop; ud2; jmp 15
    let code = b"\x53\x85\xc0\x74\x02\xff\xe0\x41\x54\x85\xc0\x74\x02\xff\xe0\
        \x90\x0f\x0b\xeb\xfb";
    let expected = [
        (0, stack(8)),
        (1, stack(16)),
        (9, stack(24)),
        (20, Rule::NONE),
    ];
    assert_eq!(rows(code), expected);
}

#[test]
fn no_more_than_four_states_are_tried() {
    // push %rbx; test %eax, %eax; je 7; jmp *%rax; 7: …
    let jump = b"\x53\x85\xc0\x74\x02\xff\xe0";
    // add $8 * pushes, %rsp; ret
    let block = |pushes: u8| [0x48, 0x83, 0xc4, 8 * pushes, 0xc3];
    for (pushes, found) in [(4, stack(40)), (5, Rule::NONE)] {
        // After the last jump nothing goes on: ud2
        let code = [&jump.repeat(5)[..], b"\x0f\x0b", &block(pushes)].concat();
        let rows = rows(&code);
        let before = rows.iter().rfind(|row| row.0 <= 37);
        assert_eq!(before.map(|row| row.1), Some(found), "{rows:?}");
    }
}

#[test]
fn one_state_is_enough_if_it_is_not_that_of_a_call() {
    // push %rbx; jmp *%rax; push %rax; ud2
    let expected = [
        (0, stack(8)),
        (1, stack(16)),
        (4, stack(24)),
        (6, Rule::NONE),
    ];
    assert_eq!(rows(b"\x53\xff\xe0\x50\x0f\x0b"), expected);
    // Which may be a call in the tail: jmp *%rax; push %rax; ud2
    let expected = [(0, stack(8)), (2, Rule::NONE)];
    assert_eq!(rows(b"\xff\xe0\x50\x0f\x0b"), expected);
}

#[test]
fn by_the_frame_pointer_where_a_table_leads_in_another_state() {
    let framed = saved(Rule::at(cfa::FRAME_POINTER, 16), -16);
    // push %rbp; mov %rsp, %rbp; test %eax, %eax; je 11; 8: nop; leave; ret;
    // 11: and $-32, %rsp; jmp *%rax; jmp 8
    let code = b"\x55\x48\x89\xe5\x85\xc0\x74\x03\x90\xc9\xc3\
        \x48\x83\xe4\xe0\xff\xe0\xeb\xf5";
    let expected = [
        (0, stack(8)),
        (1, saved(stack(16), -16)),
        (8, framed),
        (10, stack(8)),
        (11, saved(stack(16), -16)),
        (15, framed),
        (19, Rule::NONE),
    ];
    assert_eq!(rows(code), expected);
    // push %rbp; mov %rsp, %rbp; test %eax, %eax; je 10; jmp *%rax;
    // 10: and $-32, %rsp; test %eax, %eax; je 20; jmp *%rax; 20: leave; ret; jmp 20
    let code = b"\x55\x48\x89\xe5\x85\xc0\x74\x02\xff\xe0\
        \x48\x83\xe4\xe0\x85\xc0\x74\x02\xff\xe0\xc9\xc3\xeb\xfc";
    let expected = [
        (0, stack(8)),
        (1, saved(stack(16), -16)),
        (14, framed),
        (21, stack(8)),
        (22, saved(stack(16), -16)),
        (24, Rule::NONE),
    ];
    assert_eq!(rows(code), expected);
}

#[test]
fn functions_end_where_they_are_said_to() {
    // push %rbx; nop | pop %rbx; ret
    let expected = [
        (BASE, stack(8)),
        (BASE + 1, stack(16)),
        (BASE + 2, Rule::NONE),
    ];
    let only = BASE..BASE + 2;
    let rows = analyse(b"\x53\x90\x5b\xc3", BASE, std::slice::from_ref(&only), &[]);
    assert_eq!(rows, expected);
    // push %rbx; jmp *%rax | pop %rbx; ret
    let expected = [
        (BASE, stack(8)),
        (BASE + 1, stack(16)),
        (BASE + 3, Rule::NONE),
    ];
    let only = BASE..BASE + 3;
    let rows = analyse(
        b"\x53\xff\xe0\x5b\xc3",
        BASE,
        std::slice::from_ref(&only),
        &[],
    );
    assert_eq!(rows, expected);
    // What runs on into the next is no part of it: push %rbx | ret
    let expected = [(0, stack(8)), (2, Rule::NONE)];
    assert_eq!(rows_of(b"\x53\xc3", &[0, 1]), expected);
}

#[test]
fn tail_calls_and_padding() {
    // sub $8, %rsp; add $8, %rsp; jmp 16; nopl 0(%rax, %rax); nop; 16: push %rax; ud2
    let code = b"\x48\x83\xec\x08\x48\x83\xc4\x08\xeb\x06\x0f\x1f\x44\x00\x00\x90\x50\x0f\x0b";
    let functions = [BASE..BASE + 10, BASE + 16..BASE + 19];
    let expected = [
        (BASE, stack(8)),
        (BASE + 4, stack(16)),
        (BASE + 8, stack(8)),
        (BASE + 10, Rule::NONE),
        (BASE + 16, stack(8)),
        (BASE + 17, stack(16)),
        (BASE + 19, Rule::NONE),
    ];
    assert_eq!(analyse(code, BASE, &functions, &[]), expected);
    // Some count the padding as the function's before it.
    let functions = [BASE..BASE + 16, BASE + 16..BASE + 19];
    assert_eq!(analyse(code, BASE, &functions, &[]), expected);
}

#[test]
fn parts_elsewhere() {
    // sub $8, %rsp; jmp 7; ret; 7: call 0x100
    let code = b"\x48\x83\xec\x08\xeb\x01\xc3\xe8\xf4\x00\x00\x00";
    let expected = [
        (0, stack(8)),
        (4, stack(16)),
        (6, Rule::NONE),
        (7, stack(16)),
        (12, Rule::NONE),
    ];
    // Found by the state at the jump…
    assert_eq!(rows_of(code, &[0, 7]), expected);
    // … or because it is said so: here nothing jumps to it.
    let functions = [BASE..BASE + 1, BASE + 1..BASE + 2];
    let part = BASE + 7..BASE + 12;
    let rows = analyse(
        b"\xc3\xc3\x90\x90\x90\x90\x90\xc3",
        BASE,
        &functions,
        &[part],
    );
    assert_eq!(rows, [(BASE, stack(8)), (BASE + 2, Rule::NONE)]);
}

#[test]
fn thread_start() {
    // musl's __clone after the system call: test %eax, %eax; jne 15;
    // xor %ebp, %ebp; pop %rdi; call *%r9; mov %eax, %edi; syscall; hlt; 15: ret
    let code = b"\x85\xc0\x75\x0b\x31\xed\x5f\x41\xff\xd1\x89\xc7\x0f\x05\xf4\xc3";
    let expected = [
        (0, stack(8)),
        (6, lost(stack(8))),
        (7, Rule::ROOT),
        (15, stack(8)),
        (16, Rule::NONE),
    ];
    assert_eq!(rows(code), expected);
    // Without the xor: pop %rdi; call *%r9; hlt
    assert_eq!(
        rows(b"\x5f\x41\xff\xd1\xf4"),
        [(0, stack(8)), (1, Rule::ROOT), (5, Rule::NONE)]
    );
}

#[test]
fn return_address_in_a_register() {
    // vfork: pop %rdx; syscall; push %rdx; ret
    let expected = [
        (0, stack(8)),
        (1, Rule::at(cfa::RETURN_IN_REGISTER + 1, 0)),
        (4, stack(8)),
        (5, Rule::NONE),
    ];
    assert_eq!(rows(b"\x5a\x0f\x05\x52\xc3"), expected);
}

#[test]
fn signal_return() {
    let frame = Rule::at(cfa::SIGNAL_FRAME, 40);
    let code = b"\xc3\x90\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05";
    assert_eq!(
        rows_of(code, &[0, 2]),
        [(0, stack(8)), (1, frame), (11, Rule::NONE)]
    );
    let code = b"\xc3\x90\xb8\x0f\x00\x00\x00\x0f\x05";
    assert_eq!(
        rows_of(code, &[0, 2]),
        [(0, stack(8)), (1, frame), (9, Rule::NONE)]
    );
}

#[test]
fn return_address_in_any_register() {
    // pop …; nop; ud2
    for (pop, number) in [
        (&b"\x58"[..], 0),
        (b"\x5a", 1),
        (b"\x59", 2),
        (b"\x5b", 3),
        (b"\x5e", 4),
        (b"\x5f", 5),
        (b"\x41\x58", 8),
        (b"\x41\x5f", 15),
    ] {
        let code = [pop, b"\x90\x0f\x0b"].concat();
        let popped = (
            pop.len() as u64,
            Rule::at(cfa::RETURN_IN_REGISTER + number, 0),
        );
        let end = (code.len() as u64, Rule::NONE);
        assert_eq!(rows(&code), [(0, stack(8)), popped, end]);
    }
}

#[test]
fn return_address_in_a_register_that_is_overwritten_or_not() {
    let in_rdx = |offset| Rule::at(cfa::RETURN_IN_REGISTER + 1, offset);
    // pop %rdx; xor %edx, %edx; push %rdx; ret
    let expected = [(0, stack(8)), (1, in_rdx(0)), (3, Rule::NONE)];
    assert_eq!(rows(b"\x5a\x31\xd2\x52\xc3"), expected);
    // pop %rdx; push %rax; ud2
    let expected = [
        (0, stack(8)),
        (1, in_rdx(0)),
        (2, in_rdx(8)),
        (4, Rule::NONE),
    ];
    assert_eq!(rows(b"\x5a\x50\x0f\x0b"), expected);
}

#[test]
fn return_address_thrown_away() {
    // add $8, %rsp; hlt
    let expected = [(0, stack(8)), (4, Rule::ROOT), (5, Rule::NONE)];
    assert_eq!(rows(b"\x48\x83\xc4\x08\xf4"), expected);
    // xor %ebp, %ebp; pop %rdi; nop; call *%r9; hlt
    let expected = [
        (0, stack(8)),
        (2, lost(stack(8))),
        (3, Rule::ROOT),
        (8, Rule::NONE),
    ];
    assert_eq!(rows(b"\x31\xed\x5f\x90\x41\xff\xd1\xf4"), expected);
    // As sigsetjmp does: pop (%rdi); jmp *%rdx
    let expected = [(0, stack(8)), (2, Rule::NONE)];
    assert_eq!(rows(b"\x8f\x07\xff\xe2"), expected);
    // What was pushed is no return address: push %rbx; pop (%rdi); ret
    let expected = [
        (0, stack(8)),
        (1, stack(16)),
        (3, stack(8)),
        (4, Rule::NONE),
    ];
    assert_eq!(rows(b"\x53\x8f\x07\xc3"), expected);
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
fn a_return_confirms_a_state_only_if_all_of_it_is_as_it_was_at_the_call() {
    let framed = saved(Rule::at(cfa::FRAME_POINTER, 16), -16);
    // test %eax, %eax; je 14; push %rbp; mov %rsp, %rbp; and $-32, %rsp; jmp *%rax;
    // 14: jmp *%rax; ret
    let code = b"\x85\xc0\x74\x0a\x55\x48\x89\xe5\x48\x83\xe4\xe0\xff\xe0\xff\xe0\xc3";
    let expected = [
        (0, stack(8)),
        (5, saved(stack(16), -16)),
        (12, framed),
        (14, stack(8)),
        (17, Rule::NONE),
    ];
    assert_eq!(rows(code), expected);
    // test %eax, %eax; je 8; xor %ebp, %ebp; jmp *%rax; 8: jmp *%rax; ret
    let code = b"\x85\xc0\x74\x04\x31\xed\xff\xe0\xff\xe0\xc3";
    let expected = [
        (0, stack(8)),
        (6, lost(stack(8))),
        (8, stack(8)),
        (11, Rule::NONE),
    ];
    assert_eq!(rows(code), expected);
}

#[test]
fn only_addresses_of_code_make_functions() {
    // int3; lea 6(%rax), %rcx; push %rbx; 6: call *%rax; ud2
    let code = b"\xcc\x48\x8d\x48\x06\x53\xff\xd0\x0f\x0b";
    let expected = [(1, stack(8)), (6, stack(16)), (10, Rule::NONE)];
    assert_eq!(analyse(code, 0, &[], &[]), expected);
}

#[test]
fn functions_found_by_calls() {
    // int3; nop; sub $8, %rsp; call 20; lea 22(%rip), %rax; ud2;
    // 20: push %rax; ud2; int3…; 40: push %rbx; ud2
    let mut code =
        b"\xcc\x90\x48\x83\xec\x08\xe8\x09\x00\x00\x00\x48\x8d\x05\x16\x00\x00\x00\x0f\x0b\
        \x50\x0f\x0b"
            .to_vec();
    code.resize(40, 0xcc);
    code.extend(b"\x53\x0f\x0b");
    let expected = [
        (2, stack(8)),
        (6, stack(16)),
        (20, stack(8)),
        (21, stack(16)),
        (23, Rule::NONE),
        (40, stack(8)),
        (41, stack(16)),
        (43, Rule::NONE),
    ];
    assert_eq!(rows_of(&code, &[]), expected);
}

#[test]
fn hostile_input_is_survived() {
    // Numbers that look random enough.
    let mut state = 1_u64;
    let mut code = vec![0; 1 << 16];
    for byte in &mut code {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        *byte = (state >> 56) as u8;
    }
    let every: Vec<_> = (0..code.len() as u64)
        .map(|start| start..start + 100)
        .collect();
    for address in [0, u64::MAX - 1000] {
        let rows = analyse(&code, address, &every, &every[..1000]);
        assert!(rows.is_sorted_by_key(|row| row.0));
        analyse(&code, address, &[], &[]);
    }
    let backwards = Range { start: 5, end: 2 };
    assert_eq!(analyse(&[], 0, &[0..1, backwards.clone()], &[]), []);
    let last = (7, Rule::NONE);
    assert_eq!(
        analyse(&[0xc3; 9], 0, &[backwards, 6..7], &[]).last(),
        Some(&last)
    );
    // A table jump in front of many blocks that do not fit, and calls without end.
    let mut blocks = b"\x53\xff\xe0".to_vec();
    blocks.extend(b"\x50\x75\x01\xc3".repeat(10_000));
    rows(&blocks);
    rows(&b"\x50\xe8\x00\x00\x00\x00\x75\xf8".repeat(10_000));
}
