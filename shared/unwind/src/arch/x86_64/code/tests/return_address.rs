//! Tests of return addresses in other places, and of code without a return address.

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
    // The same code without the xor: pop %rdi; call *%r9; hlt
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
