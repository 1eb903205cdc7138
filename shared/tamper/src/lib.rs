//! For tests: input that was tampered with, and what reading it cost.
//!
//! A test hands [`tamper`] sound inputs and a check of what must be true
//! whatever the bytes are; `fuzz/` has the same checks as targets of libFuzzer.

mod measured;
mod messages;
mod mutate;
mod random;

use std::env;
use std::time::{Duration, Instant};

pub use measured::{Cost, Measured, cost};
pub use messages::mutate_messages;
pub use random::Random;

/// For how long [`tamper`] tries unless `SYSTEMSCOPE_FUZZ_SECONDS` says.
const SECONDS: u64 = 2;

/// Checks the seeds, and then for a while what becomes of them when they are
/// changed in a few places. The changes are the same every time, in the same
/// order; how far they get depends on the machine. `kind` names the inputs.
///
/// # Panics
/// If the check does, or `SYSTEMSCOPE_FUZZ_SECONDS` is no number.
pub fn tamper(kind: &str, seeds: &[Vec<u8>], check: impl Fn(&[u8])) {
    let tried = tamper_for(time(SECONDS), seeds, check);
    println!("{tried} {kind}");
}

/// For how long to try: `SYSTEMSCOPE_FUZZ_SECONDS`, or else so many seconds.
///
/// # Panics
/// `SYSTEMSCOPE_FUZZ_SECONDS` is no number.
#[must_use]
#[allow(clippy::expect_used)]
pub fn time(unless_said: u64) -> Duration {
    let seconds = env::var("SYSTEMSCOPE_FUZZ_SECONDS").map_or(unless_said, |text| {
        text.parse().expect("SYSTEMSCOPE_FUZZ_SECONDS in seconds")
    });
    Duration::from_secs(seconds)
}

/// The same for so long; how many changed inputs were checked.
fn tamper_for(time: Duration, seeds: &[Vec<u8>], check: impl Fn(&[u8])) -> u64 {
    for seed in seeds {
        check(seed);
    }
    let mut random = Random::new(0x5ca1_ab1e);
    let end = Instant::now() + time;
    let mut tried = 0_u64;
    while Instant::now() < end {
        let mut bytes = seeds[random.below(seeds.len())].clone();
        for _ in 0..=random.below(12) {
            mutate::mutate(&mut bytes, &mut random);
        }
        check(&bytes);
        tried += 1;
    }
    tried
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn seeds_are_checked_and_then_what_becomes_of_them() {
        let seeds = [b"one and the same".to_vec(), b"another".to_vec()];
        let checked = RefCell::new(Vec::new());
        let begun = Instant::now();
        let time = Duration::from_millis(50);
        let tried = tamper_for(time, &seeds, |bytes| {
            checked.borrow_mut().push(bytes.to_vec())
        });
        assert!(begun.elapsed() >= time);
        let checked = checked.into_inner();
        assert_eq!(checked[..2], seeds);
        assert_eq!(checked.len() as u64, 2 + tried);
        let changed = checked.iter().filter(|bytes| !seeds.contains(bytes));
        assert!(changed.count() as u64 > tried / 2);
    }
}
