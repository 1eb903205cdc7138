//! Finds an interpreter in a file: its version, its thread-local variable, and its functions.

use std::ops::Range;

use elf::{Elf, Source};
use process::ELF_MACHINE;

use crate::arch::{jump_at, relative, thread_local_index};

/// `const int ruby_api_version[3]` of version.c: major, minor and teeny version.
const VERSION: &str = "ruby_api_version";

/// Function of vm.c that reads the thread-local variable `ruby_current_ec`.
const READS_CONTEXT: &[u8] = b"rb_thread_current";
/// Function of symbol.c that leads to `global_symbols`.
const READS_SYMBOLS: &[u8] = b"rb_id2str";
/// Function of vm.c that interprets Ruby. Libraries of 3.3 do not export it.
const EXECUTION: [&[u8]; 4] = [
    b"rb_vm_exec",
    b"vm_exec",
    b"rb_vm_exec.cold",
    b"vm_exec.cold",
];
/// Function of vm.c that ends with a jump to it.
const JUMPS_TO_EXECUTION: &[u8] = b"rb_iseq_eval";

/// Maximum number of bytes of a function that are decoded.
const CODE_LIMIT: u64 = 512;

/// Interpreter that a file contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interpreter {
    /// Major and minor version.
    pub version: (u32, u32),
    /// Virtual address of the `tls_index` of the variable that leads to a thread's frames. The
    /// loader fills it in. `None` if a program has the interpreter in itself.
    pub context: Option<u64>,
    /// Virtual address of `global_symbols`, which has the names of functions in C.
    pub symbols: Option<u64>,
    /// Virtual addresses of the function that interprets Ruby.
    pub execution: [(u64, u64); EXECUTION.len()],
}

/// Returns the interpreter that an ELF file contains, from the file's variables and functions.
/// Most files contain none, which takes a few small reads to find out.
pub fn find<S: Source>(elf: &Elf<S>) -> Option<Interpreter> {
    if !elf.header().is_for(ELF_MACHINE) {
        return None;
    }
    let version = elf.initial_bytes(elf.variable(VERSION)?.start, 8)?;
    let (major, minor) = version.split_first_chunk::<4>()?;
    let version = (
        u32::from_le_bytes(*major),
        u32::from_le_bytes(*minor.first_chunk()?),
    );

    let mut execution = [(0, 0); EXECUTION.len()];
    let (mut context, mut symbols, mut jumps) = (None, None, None);
    elf.for_each_function(|name, range| {
        if let Some(place) = EXECUTION.iter().position(|known| *known == name) {
            if let Some(place) = execution.get_mut(place) {
                *place = (range.start, range.end);
            }
        } else if name == READS_CONTEXT {
            context = Some(range);
        } else if name == READS_SYMBOLS {
            symbols = Some(range);
        } else if name == JUMPS_TO_EXECUTION {
            jumps = Some(range);
        }
    });
    let code = |range: Range<u64>| {
        let size = (range.end - range.start).min(CODE_LIMIT);
        Some((range.start, elf.initial_bytes(range.start, size)?))
    };
    if execution.iter().all(|(start, end)| start == end)
        && let Some(start) = jumps
            .and_then(code)
            .and_then(|(at, code)| last_jump(at, &code))
        && let Some(end) = function_end(elf, start)
    {
        execution[0] = (start, end);
    }
    let symbols = symbols.and_then(code);
    let reads_symbols = symbols.and_then(|(at, code)| last_jump(at, &code));
    Some(Interpreter {
        version,
        context: context
            .and_then(code)
            .and_then(|(at, code)| thread_local_index(at, &code)),
        symbols: reads_symbols.and_then(|at| symbols_in(at, &elf.initial_bytes(at, 256)?)),
        execution,
    })
}

/// Returns the target of the last `jmp rel32` in a function's code, in front of which the function
/// has restored the stack.
fn last_jump(address: u64, code: &[u8]) -> Option<u64> {
    let mut ends = (0..code.len()).rev().filter(|at| leaves(&code[..*at]));
    ends.find_map(|at| jump_at(address, code, at))
}

/// Returns whether code ends with an instruction that comes before a jump to another function:
/// `pop`, or `cmov` of a function without a frame.
fn leaves(code: &[u8]) -> bool {
    match code {
        [.., 0x41, 0x5c..=0x5f] | [.., 0x58 | 0x5b | 0x5d] => true,
        // cmova or cmovbe %rax,%rdi or %eax,%edi, and perhaps xor %esi,%esi behind it.
        [.., 0x0f, 0x46..=0x47, 0xf8] | [.., 0x0f, 0x46..=0x47, 0xf8, 0x31, 0xf6] => true,
        _ => false,
    }
}

/// Returns the address of `global_symbols` from the code of `get_id_serial_entry`, which compares
/// `last_id` at its beginning and reads `ids`, 16 bytes further.
fn symbols_in(address: u64, code: &[u8]) -> Option<u64> {
    // An opcode, a byte for a register and %rip, and a distance.
    let accessed = (0..code.len().saturating_sub(5)).filter_map(|at| {
        let is_access = matches!(code[at], 0x39 | 0x3b | 0x8b) && code[at + 1] & 0xc7 == 5;
        let end = address.wrapping_add(at as u64 + 6);
        is_access.then(|| relative(end, &code[at + 2..]))?
    });
    let accessed: Vec<u64> = accessed.collect();
    let mut starts = accessed.iter().copied();
    starts.find(|start| accessed.contains(&start.wrapping_add(16)))
}

/// Returns the end of the function at `start`: the start of the next one in `.eh_frame_hdr`, which
/// has the distance of each function from itself, in order (Linux Standard Base, 10.6.2).
fn function_end<S: Source>(elf: &Elf<S>, start: u64) -> Option<u64> {
    /// Version, and encodings of the pointer, the number, and the entries.
    const HEADER: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
    const LIMIT: u64 = 1 << 20;
    let section = elf.section(".eh_frame_hdr")?;
    let (base, size) = (section.address, section.size);
    let bytes = elf.initial_bytes(base, size.min(LIMIT))?;
    let entries = bytes.strip_prefix(&HEADER)?.get(8..)?.chunks_exact(8);
    let starts = entries.filter_map(|entry| relative(base, entry));
    let starts: Vec<u64> = starts.collect();
    let at = starts.binary_search(&start).ok()?;
    starts.get(at + 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_debian_is_understood() {
        // rb_thread_current and rb_iseq_eval of 3.3.8, rb_id2str of 3.1.2 and of 3.4.11, and the
        // beginning of get_id_serial_entry of 3.1.2.
        let current = b"\x48\x83\xec\x08\x66\x48\x8d\x3d\x10\x50\x22\x00\x66\x66\x48\xe8";
        assert_eq!(thread_local_index(0x23_5ab4, current), Some(0x45_aad0));
        assert_eq!(thread_local_index(0, &current[..7]), None);
        let eval = b"\x41\x5e\x41\x5f\xe9\x8d\xf5\xff\xff\x48\x8b\x05\xe9\x01\x02\x03\x04";
        assert_eq!(last_jump(0x27_ea0a, eval), Some(0x27_dfa0));
        let name = b"\x0f\x47\xf8\x31\xf6\xe9\x78\xdd\xff\xff";
        assert_eq!(last_jump(0x20_8e8e, name), Some(0x20_6c10));
        let name = b"\x48\x0f\x46\xf8\xe9\xd4\xde\xff\xff";
        assert_eq!(last_jump(0x25_eba3, name), Some(0x25_ca80));
        let entry = b"\x39\x3d\x71\x85\x1a\x00\x76\x05\x48\x8b\x3d\x78\x85\x1a\x00";
        assert_eq!(symbols_in(0x20_6c49, entry), Some(0x3a_f1c0));
        assert_eq!(symbols_in(0x20_6c49, &entry[..8]), None);
    }
}
