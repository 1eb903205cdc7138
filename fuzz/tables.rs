//! Makes unwind tables of an ELF file of arbitrary bytes. Run by `scripts/fuzz.sh`.
#![no_main]

#[path = "../shared/unwind/tests/hostile/check.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| check::check(bytes));
