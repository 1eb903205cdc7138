//! The clock that programs read: `bpf_ktime_get_ns` is CLOCK_MONOTONIC.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Now, in nanoseconds of `CLOCK_MONOTONIC`.
#[must_use]
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // The clock starts at boot: neither field is ever negative.
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// Sleeps until `time` of [`monotonic_ns`].
pub fn sleep_until(time: u64) {
    let now = monotonic_ns();
    std::thread::sleep(Duration::from_nanos(time.saturating_sub(now)));
}
