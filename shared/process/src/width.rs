//! Detects processes that run 32-bit code.

use std::fs::File;
use std::io::Read;

use crate::threads::living_folder;

/// Returns whether process `pid` runs a 32-bit program; `false` for a kernel thread, and for a
/// process that has ended.
///
/// The words of a program's auxiliary vector (`/proc/PID/auxv` in proc(5)) have the program's
/// width. In a 64-bit program the first word is a small number. In a 32-bit program the same 8
/// bytes are a number and a value.
#[must_use]
pub fn runs_32_bit_code(pid: u32) -> bool {
    let mut first = [0; 8];
    let read = File::open(format!("{}/auxv", living_folder(pid)))
        .and_then(|mut file| file.read_exact(&mut first));
    read.is_ok() && u64::from_ne_bytes(first) > u64::from(u32::MAX)
}
