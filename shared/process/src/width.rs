//! Detects processes that run 32-bit code.

use std::fs::File;
use std::io::Read;

use crate::threads::living_folder;

/// Returns whether process `pid` runs a 32-bit program. The result is `false` for kernel
/// threads and processes that ended.
///
/// The auxiliary vector of a program has words of the program's width (`/proc/PID/auxv` in
/// proc(5)). A first word of 64 bits is a small number. In a 32-bit program the same bytes are
/// a number and an address.
#[must_use]
pub fn runs_32_bit_code(pid: u32) -> bool {
    let mut first = [0; 8];
    let read = File::open(format!("{}/auxv", living_folder(pid)))
        .and_then(|mut file| file.read_exact(&mut first));
    read.is_ok() && u64::from_ne_bytes(first) > u64::from(u32::MAX)
}
