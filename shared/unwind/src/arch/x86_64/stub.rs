//! Stubs that runtimes write into memory, without unwind tables and without frame pointers. CPython
//! writes a stub for each function under `-X perf`. A stub is so short that the unwind can read its
//! instructions up to the return. These instructions show where the caller's frame is.
//! `bpf/include/arch/x86_64/stubs.h` does the same.

/// Maximum number of instructions that are read of a stub.
const STUB_INSTRUCTIONS: usize = 6;

/// Place of the frame of a stub's caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StubFrame {
    /// Distance from the stack pointer to the canonical frame address, in bytes.
    pub(crate) cfa_offset: u64,
    /// Distance from the stack pointer to the saved frame pointer, in bytes; `None` if the register
    /// has not changed.
    pub(crate) frame_pointer_offset: Option<u64>,
}

/// Reads instructions up to a return. `code` is a little-endian number that begins with the next
/// instruction to run. Returns `None` if the instructions are not those of a stub.
pub(crate) fn read_stub(mut code: u128) -> Option<StubFrame> {
    let mut offset = 0_i64;
    let mut frame_pointer = -1;
    for _ in 0..STUB_INSTRUCTIONS {
        let bytes = code.to_le_bytes();
        let length = match bytes {
            // ret
            [0xc3, ..] => {
                return Some(StubFrame {
                    cfa_offset: u64::try_from(offset).ok()? + 8,
                    frame_pointer_offset: u64::try_from(frame_pointer).ok(),
                });
            }
            // add $IMMEDIATE, %rsp
            [0x48, 0x83, 0xc4, immediate, ..] => {
                offset += i64::from(immediate as i8);
                4
            }
            // sub $IMMEDIATE, %rsp
            [0x48, 0x83, 0xec, immediate, ..] => {
                offset -= i64::from(immediate as i8);
                4
            }
            // endbr64
            [0xf3, 0x0f, 0x1e, 0xfa, ..] => 4,
            // call *REGISTER
            [0xff, 0xd0..=0xd7, ..] => 2,
            // mov %rsp, %rbp
            [0x48, 0x89, 0xe5, ..] => 3,
            // push %rbp
            [0x55, ..] => {
                offset -= 8;
                1
            }
            // pop %rbp
            [0x5d, ..] => {
                frame_pointer = offset;
                offset += 8;
                1
            }
            _ => return None,
        };
        code >>= 8 * length;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(code: &[u8]) -> Option<(u64, Option<u64>)> {
        let mut bytes = [0; 16];
        bytes[..code.len()].copy_from_slice(code);
        let stub = read_stub(u128::from_le_bytes(bytes))?;
        Some((stub.cfa_offset, stub.frame_pointer_offset))
    }

    #[test]
    fn stubs_of_cpython_are_read_from_each_of_their_instructions() {
        // Python/asm_trampoline.S of 3.13: endbr64; sub $8, %rsp; call *%rcx; add $8, %rsp; ret
        let stub = b"\xf3\x0f\x1e\xfa\x48\x83\xec\x08\xff\xd1\x48\x83\xc4\x08\xc3";
        for (from, cfa) in [(0, 8), (4, 8), (8, 16), (10, 16), (14, 8)] {
            assert_eq!(read(&stub[from..]), Some((cfa, None)), "from {from}");
        }
        // A stub with a frame pointer: push %rbp; mov %rsp, %rbp; call *%rcx; pop %rbp; ret
        let stub = b"\x55\x48\x89\xe5\xff\xd1\x5d\xc3";
        for (from, cfa, saved) in [
            (0, 8, None),
            (1, 16, Some(0)),
            (6, 16, Some(0)),
            (7, 8, None),
        ] {
            assert_eq!(read(&stub[from..]), Some((cfa, saved)), "from {from}");
        }
    }

    #[test]
    fn other_code_is_no_stub() {
        // leave; ret: a compiler's function, which keeps a frame pointer.
        assert_eq!(read(b"\xc9\xc3"), None);
        // sub $8, %rsp; ret: the return address would be below the stack pointer.
        assert_eq!(read(b"\x48\x83\xec\x08\xc3"), None);
        // The code has no return.
        assert_eq!(read(&[0x55; 16]), None);
        assert_eq!(read(&[]), None);
    }
}
