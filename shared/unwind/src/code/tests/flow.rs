//! Jumps, tables of them, and calls.

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
fn what_is_found_before_a_call_holds_after_it() {
    // test %eax, %eax; je 12; 4: call 0x100; nop; ud2; 12: push %rax; jmp 4
    let code = b"\x85\xc0\x74\x08\xe8\xf7\x00\x00\x00\x90\x0f\x0b\x50\xeb\xf5";
    let expected = [
        (0, stack(8)),
        (4, Rule::NONE),
        (12, stack(8)),
        (13, stack(16)),
        (15, Rule::NONE),
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
fn a_call_that_fits_in_one_state_of_several_returns() {
    // push %rbx; test %eax, %eax; je 7; jmp *%rax; 7: push %r12; test %eax, %eax;
    // je 20; jmp *%rax; call 0x100; 20: pop %r12; pop %rbx; ret
    let code = b"\x53\x85\xc0\x74\x02\xff\xe0\x41\x54\x85\xc0\x74\x07\xff\xe0\
        \xe8\xec\x00\x00\x00\x41\x5c\x5b\xc3";
    let expected = [
        (0, stack(8)),
        (1, stack(16)),
        (9, stack(24)),
        (22, stack(16)),
        (23, stack(8)),
        (24, Rule::NONE),
    ];
    assert_eq!(rows(code), expected);
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
    // The same with ud2 instead of leave; ret.
    let code = b"\x55\x48\x89\xe5\x85\xc0\x74\x02\xff\xe0\
        \x48\x83\xe4\xe0\x85\xc0\x74\x02\xff\xe0\x0f\x0b\xeb\xfc";
    let expected = [
        (0, stack(8)),
        (1, saved(stack(16), -16)),
        (14, framed),
        (22, saved(stack(16), -16)),
        (24, Rule::NONE),
    ];
    assert_eq!(rows(code), expected);
}
