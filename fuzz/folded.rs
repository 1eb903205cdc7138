//! Reads arbitrary bytes as folded stacks. Run by `scripts/fuzz.sh`.
#![no_main]

#[path = "../shared/capture/tests/tampered/folded.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| check::check(bytes));
