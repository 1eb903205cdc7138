//! For tests: input that was tampered with, and what reading it cost.
//!
//! A test hands [`tamper`] sound inputs and a check of what must be true
//! whatever the bytes are; `fuzz/` has the same checks as targets of libFuzzer.

mod measured;
mod mutate;
mod random;

use std::env;
use std::time::{Duration, Instant};

pub use measured::{Cost, Measured, cost};
pub use random::Random;

/// For how long [`tamper`] tries unless `SYSTEMSCOPE_FUZZ_SECONDS` says.
const SECONDS: u64 = 20;

/// Checks the seeds, and then for a while what becomes of them when they are
/// changed in a few places. The changes are the same every time, in the same
/// order; how far they get depends on the machine. `kind` names the inputs.
///
/// # Panics
/// If the check does, or `SYSTEMSCOPE_FUZZ_SECONDS` is no number.
#[allow(clippy::expect_used)]
pub fn tamper(kind: &str, seeds: &[Vec<u8>], check: impl Fn(&[u8])) {
    let seconds = env::var("SYSTEMSCOPE_FUZZ_SECONDS").map_or(SECONDS, |text| {
        text.parse().expect("SYSTEMSCOPE_FUZZ_SECONDS in seconds")
    });
    for seed in seeds {
        check(seed);
    }
    let mut random = Random::new(0x5ca1_ab1e);
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut tried = 0_u64;
    while Instant::now() < end {
        let mut bytes = seeds[random.below(seeds.len())].clone();
        for _ in 0..=random.below(12) {
            mutate::mutate(&mut bytes, &mut random);
        }
        check(&bytes);
        tried += 1;
    }
    println!("{tried} {kind}");
}
