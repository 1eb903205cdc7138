//! Checks that the running kernel's verifier accepts every program. Needs root.
#![allow(clippy::panic)]

use libbpf_rs::ObjectBuilder;

#[test]
fn every_program_loads() {
    assert!(!bpf::OBJECTS.is_empty());
    // Linux 5.10 lacks a helper that this object needs. The tools work without the object.
    let optional = bpf::kernel_names::OBJECT.name;
    let needed = bpf::OBJECTS.iter().filter(|object| object.name != optional);
    for object in needed {
        let open = ObjectBuilder::default().open_memory(object.elf);
        open.and_then(|open| open.load())
            .unwrap_or_else(|error| panic!("load {}, as root: {error}", object.name));
    }
}

/// Maximum bytes of stack that the functions of a chain of calls may use together: MAX_BPF_STACK
/// of `include/linux/filter.h`. The verifier rounds each function's bytes up to [`ROUNDED_TO`]:
/// check_max_stack_depth() of `kernel/bpf/verifier.c` in Linux 5.10. Later kernels round up
/// less.
const MAX_STACK: u64 = 512;
const ROUNDED_TO: u64 = 32;

/// Instruction: `struct bpf_insn` of `include/uapi/linux/bpf.h`.
struct Instruction {
    code: u8,
    to: u8,
    from: u8,
    offset: i16,
    number: i32,
}

/// Register that points to the end of a function's stack.
const FRAME: u8 = 10;
/// BPF_ALU64 | BPF_MOV | BPF_X, BPF_ALU64 | BPF_ADD | BPF_K, and BPF_JMP | BPF_CALL.
const COPY: u8 = 0xbf;
const ADD: u8 = 0x07;
const CALL: u8 = 0x85;
/// BPF_PSEUDO_CALL: a call of another function of the program.
const OF_PROGRAM: u8 = 1;

/// Returns the index of the first instruction of the function that an instruction calls.
fn called(code: &[Instruction], at: usize) -> Option<usize> {
    let Instruction {
        code, from, number, ..
    } = code[at];
    let is_call = code == CALL && from == OF_PROGRAM;
    is_call.then(|| at.checked_add_signed(number as isize + 1))?
}

/// Returns the bytes from the end of the stack down to the address that an instruction uses; 0
/// if it uses none.
fn used(code: &[Instruction], at: usize) -> u64 {
    let Instruction {
        code: operation,
        to,
        from,
        offset,
        ..
    } = code[at];
    // BPF_LDX, BPF_ST and BPF_STX.
    let is_access = match operation & 7 {
        1 => from == FRAME,
        2 | 3 => to == FRAME,
        _ => false,
    };
    let offset = match code.get(at + 1) {
        _ if is_access => i64::from(offset),
        Some(add) if operation == COPY && from == FRAME && add.code == ADD && add.to == to => {
            i64::from(add.number)
        }
        _ => 0,
    };
    u64::try_from(-offset).unwrap_or(0)
}

/// Returns the bytes of stack of the deepest chain of calls that begins with a function.
fn stack_of_chain(code: &[Instruction], starts: &[usize], function: usize) -> u64 {
    let end = starts.iter().find(|&&start| start > function);
    let places = function..*end.unwrap_or(&code.len());
    let own = places.clone().map(|at| used(code, at)).max().unwrap_or(0);
    let callees = places.filter_map(|at| called(code, at));
    let callees: std::collections::BTreeSet<usize> = callees.collect();
    let deepest = callees.into_iter();
    let deepest = deepest.map(|callee| stack_of_chain(code, starts, callee));
    own.max(1).next_multiple_of(ROUNDED_TO) + deepest.max().unwrap_or(0)
}

#[test]
fn chains_of_calls_have_room_on_the_stack_of_linux_5_10() {
    let mut deepest = 0;
    for object in bpf::OBJECTS {
        let open = ObjectBuilder::default().open_memory(object.elf);
        // At load time libbpf appends the functions that a program calls to the program.
        let loaded = open.and_then(|open| open.load());
        let loaded = loaded.unwrap_or_else(|error| panic!("load {}: {error}", object.name));
        for program in loaded.progs() {
            let code = program.insns().iter().map(|insn| Instruction {
                code: insn.code,
                to: insn.dst_reg(),
                from: insn.src_reg(),
                offset: insn.off,
                number: insn.imm,
            });
            let code: Vec<Instruction> = code.collect();
            let mut starts: Vec<usize> =
                (0..code.len()).filter_map(|at| called(&code, at)).collect();
            starts.sort_unstable();
            let stack = stack_of_chain(&code, &starts, 0);
            let name = program.name().to_string_lossy();
            assert!(
                stack <= MAX_STACK,
                "{name} of {}: {stack} bytes of stack",
                object.name
            );
            deepest = deepest.max(stack);
        }
    }
    // Unwinding takes more than half of the limit.
    assert!(deepest > MAX_STACK / 2, "{deepest} bytes are the deepest");
}
