//! What must be true whatever the bytes are. The fuzz target uses it, too.

use std::time::Duration;

use profile::Unit;
use profile::folded::read;

/// Reads `bytes` as folded stacks, with threads and without.
pub(crate) fn check(bytes: &[u8]) {
    for per_thread in [false, true] {
        let (read, cost) = tamper::cost(|| read(bytes, Unit::Nanoseconds, per_thread));
        assert!(cost.time < Duration::from_secs(2), "{cost:?}");
        // A frame takes two bytes of text, and 40 in memory.
        assert!(cost.bytes < (1 << 20) + 256 * bytes.len(), "{cost:?}");
        let Ok(profile) = read else { continue };
        let lines = bytes.split(|&byte| byte == b'\n').count();
        assert!(profile.stacks.len() <= lines);
        for stack in profile.stacks.keys() {
            assert_eq!(stack.thread.is_some(), per_thread);
            let wakers = stack.wakers.iter().map(|waker| waker.frames.len());
            assert!(wakers.sum::<usize>() + stack.frames.len() <= bytes.len());
        }
    }
}
