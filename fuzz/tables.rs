//! Any bytes at all as an ELF file to make unwind tables of. Run by
//! `scripts/fuzz.sh`.
#![no_main]

#[path = "../shared/unwind/tests/hostile/check.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| check::check(bytes));
