//! Checks on folded stacks of arbitrary bytes. The fuzz target also uses these checks.

use std::time::Duration;

use profile::folded::read;
use profile::{Stack, Unit};

/// Reads `bytes` as folded stacks, with and without threads.
pub(crate) fn check(bytes: &[u8]) {
    for per_thread in [false, true] {
        let (read, cost) = tamper::cost(|| read(bytes, Unit::Nanoseconds, per_thread));
        assert!(cost.time < Duration::from_secs(2), "{cost:?}");
        // A frame takes two bytes of text, and 40 bytes in memory.
        assert!(cost.bytes < (1 << 20) + 256 * bytes.len(), "{cost:?}");
        let Ok(profile) = read else { continue };
        let lines = bytes.split(|&byte| byte == b'\n').count();
        assert!(profile.samples.len() <= lines);
        for sample in profile.samples.keys() {
            assert_eq!(sample.thread.is_some(), per_thread);
            let depth = |stack: Stack| {
                let [user, kernel] = [stack.user, stack.kernel];
                profile.frames_of(user).count() + profile.frames_of(kernel).count()
            };
            let wakers = sample.wakers.map(|wakers| profile.wakers[wakers].iter());
            let of_wakers = wakers.into_iter().flatten().map(|waker| depth(waker.stack));
            assert!(of_wakers.sum::<usize>() + depth(sample.stack) <= bytes.len());
        }
    }
}
