//! Tests of code in which the beginnings of functions are unknown.

use super::*;

/// Returns the rules of `code`, by offset. No known function contains the code.
fn unknown_function(code: &[u8]) -> Vec<(u64, Rule)> {
    // The only known function is before the code: hlt; ud2.
    let code = [b"\xf4\x0f\x0b", code].concat();
    let known = BASE..BASE + 1;
    let rows = analyse(&code, BASE, std::slice::from_ref(&known), &[]);
    let rows = rows.into_iter().filter(|row| row.0 > BASE + 1);
    rows.map(|(address, rule)| (address - BASE - 3, rule))
        .collect()
}

#[test]
fn pops_tell_what_was_pushed() {
    // push %rbp; push %rbx; sub $0x18, %rsp; syscall; add $0x18, %rsp; pop %rbx; pop %rbp; ret
    let code = b"\x55\x53\x48\x83\xec\x18\x0f\x05\x48\x83\xc4\x18\x5b\x5d\xc3";
    let expected = [
        (0, stack(8)),
        (1, saved(stack(16), -16)),
        (2, saved(stack(24), -16)),
        (6, saved(stack(48), -16)),
        (12, saved(stack(24), -16)),
        (13, saved(stack(16), -16)),
        (14, stack(8)),
        (15, Rule::NONE),
    ];
    assert_eq!(unknown_function(code), expected);
}

#[test]
fn leave_tells_that_there_is_a_frame_pointer() {
    // push %rbp; mov %rsp, %rbp; and $-64, %rsp; mov %rdi, %rsp; leave; ret
    let code = b"\x55\x48\x89\xe5\x48\x83\xe4\xc0\x48\x89\xfc\xc9\xc3";
    let expected = [
        (0, stack(8)),
        (1, saved(stack(16), -16)),
        (4, saved(Rule::at(cfa::FRAME_POINTER, 16), -16)),
        (12, stack(8)),
        (13, Rule::NONE),
    ];
    assert_eq!(unknown_function(code), expected);
}

#[test]
fn the_function_behind_a_call_that_never_returns_is_another() {
    // sub $0x18, %rsp; test %eax, %eax; je 15; call 0x100; nothing lies between here and
    // 14: ret; 15: add $0x18, %rsp; ret
    let code = b"\x48\x83\xec\x18\x85\xc0\x74\x06\xe8\xf3\x00\x00\x00\xc3\x48\x83\xc4\x18\xc3";
    let rows = unknown_function(code);
    let at = |offset| rows.iter().rfind(|row| row.0 <= offset).map(|row| row.1);
    assert_eq!(at(4), Some(stack(32)));
    // If the call returned, the stack pointer at the call would not be aligned.
    assert_eq!(at(8), Some(Rule::NONE));
    assert_eq!(at(13), Some(stack(8)));
}

#[test]
fn ways_to_returns_that_disagree_tell_nothing() {
    // je 6; add $8, %rsp; 6: ret
    let rows = unknown_function(b"\x74\x04\x48\x83\xc4\x08\xc3");
    assert_eq!(rows[0], (2, stack(16)));
}
