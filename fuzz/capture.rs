//! Reads arbitrary bytes as the uncompressed content of a capture. Run by `scripts/fuzz.sh`.
#![no_main]

#[path = "../shared/capture/tests/tampered/captures.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| check::check(bytes));
