//! Whether a process runs 32-bit code.

use std::fs::File;
use std::io::Read;

use crate::threads::living_folder;

/// Whether process `pid` runs a 32-bit program. Kernel threads and processes that ended run
/// none.
///
/// The kernel describes a program to itself in words of the program's width (`/proc/PID/auxv`
/// in proc(5)). The first word of 64 bits is a small number; two of 32 bits in its place are
/// a number and an address.
#[must_use]
pub fn runs_32_bit_code(pid: u32) -> bool {
    let mut first = [0; 8];
    let read = File::open(format!("{}/auxv", living_folder(pid)))
        .and_then(|mut file| file.read_exact(&mut first));
    read.is_ok() && u64::from_ne_bytes(first) > u64::from(u32::MAX)
}
