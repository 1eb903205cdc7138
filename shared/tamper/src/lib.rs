//! Tampers with input for tests, and measures the cost of reading it.
//!
//! A test passes valid inputs and a check to [`tamper`]. The check must pass for any bytes. The
//! fuzz targets in `fuzz/` run the same checks.

mod measured;
mod messages;
mod mutate;
mod random;

use std::env;
use std::time::{Duration, Instant};

pub use measured::{Cost, Measured, cost};
pub use messages::mutate_messages;
pub use random::Random;

/// Time for which [`tamper`] runs, in seconds, unless `SYSTEMSCOPE_FUZZ_SECONDS` is set.
const SECONDS: u64 = 2;

/// Checks the seeds, and then copies of them with a few changes, for [`time`] of 2 seconds. The
/// changes and their order are the same in each run. Their number depends on the machine. `kind`
/// names the inputs in the output.
///
/// # Panics
/// The check panics, or `SYSTEMSCOPE_FUZZ_SECONDS` is not a number.
pub fn tamper(kind: &str, seeds: &[Vec<u8>], check: impl Fn(&[u8])) {
    let tried = tamper_for(time(SECONDS), seeds, check);
    println!("{tried} {kind}");
}

/// Returns the time for which a test runs: `SYSTEMSCOPE_FUZZ_SECONDS`, or else `default` seconds.
///
/// # Panics
/// `SYSTEMSCOPE_FUZZ_SECONDS` is not a number.
#[must_use]
#[allow(clippy::expect_used)]
pub fn time(default: u64) -> Duration {
    let seconds = env::var("SYSTEMSCOPE_FUZZ_SECONDS").map_or(default, |text| {
        text.parse().expect("SYSTEMSCOPE_FUZZ_SECONDS in seconds")
    });
    Duration::from_secs(seconds)
}

/// Checks seeds and changed copies like [`tamper`], for `time`. Returns the number of changed
/// copies.
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
