//! Copies the image of an ELF file from memory with arbitrary bytes. Run by `scripts/fuzz.sh`.
#![no_main]
#![allow(dead_code)] // the other targets' checks

#[path = "../shared/symbolize/tests/tampered/check.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| check::memory_image(bytes));
