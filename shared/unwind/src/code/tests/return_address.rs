//! Where the return address is, and where there is none.

use super::*;

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
