//! Reads arbitrary bytes as a perf map. Run by `scripts/fuzz.sh`.
#![no_main]
#![allow(dead_code)] // the other target's check

#[path = "../shared/symbolize/tests/tampered/check.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| check::perf_map(bytes));
