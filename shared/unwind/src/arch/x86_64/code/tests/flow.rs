//! Tests of jumps, jump tables, and calls.

use super::*;

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
    // The same jump with a frame pointer: push %rbp; mov %rsp, %rbp; …; leave; ret
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
    // The code after the jump cannot be a target: push %rbx; jmp *%rax; ret
    assert_eq!(
        rows(b"\x53\xff\xe0\xc3"),
        [
            (0, stack(8)),
            (1, stack(16)),
            (3, stack(8)),
            (4, Rule::NONE)
        ]
    );
    // Nothing is known of the code after the jump: jmp *%rax; call 0x100
    assert_eq!(
        rows(b"\xff\xe0\xe8\xf9\x00\x00\x00"),
        [(0, stack(8)), (2, Rule::NONE)]
    );
}

#[test]
fn what_follows_a_call_behind_a_table_is_known_by_the_frame_pointer_if_the_call_is() {
    // push %rbp; mov %rsp, %rbp; jmp *%rax; 6: call 0x100; push %rax; jmp 6
    let code = b"\x55\x48\x89\xe5\xff\xe0\xe8\xf5\x00\x00\x00\x50\xeb\xf8";
    let framed = saved(Rule::at(cfa::FRAME_POINTER, 16), -16);
    let expected = [
        (0, stack(8)),
        (1, saved(stack(16), -16)),
        (6, framed),
        (14, Rule::NONE),
    ];
    assert_eq!(rows(code), expected);
}
