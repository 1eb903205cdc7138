//! Any bytes at all as an ELF image. Run by `scripts/fuzz.sh`.
#![no_main]

#[path = "../tests/hostile/check.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| check::check(bytes));
