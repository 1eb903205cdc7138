//! Tests of the beginnings and ends of functions.

use super::*;

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
    // Some symbols count the padding as part of the function before it.
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
        (6, stack(8)),
        (7, stack(16)),
        (12, Rule::NONE),
    ];
    // The state at the jump shows that the target is a part.
    assert_eq!(rows_of(code, &[0, 7]), expected);
    // Here nothing jumps to the part, but the caller of the analysis lists it.
    let functions = [BASE..BASE + 1, BASE + 1..BASE + 2];
    let part = BASE + 7..BASE + 12;
    let rows = analyse(
        b"\xc3\xc3\x90\x90\x90\x90\x90\xf4",
        BASE,
        &functions,
        &[part],
    );
    assert_eq!(rows, [(BASE, stack(8)), (BASE + 2, Rule::NONE)]);
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
