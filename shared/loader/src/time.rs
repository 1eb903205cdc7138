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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_counts_nanoseconds_since_boot() {
        let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
        let uptime: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
        // Suspended time counts in the one and not in the other.
        assert!(monotonic_ns() as f64 / 1e9 < uptime + 1.0);
        let nanoseconds = |now: rustix::time::Timespec| {
            let since = Duration::new(now.tv_sec.cast_unsigned(), now.tv_nsec as u32);
            u64::try_from(since.as_nanos()).unwrap()
        };
        let before = nanoseconds(clock_gettime(ClockId::Monotonic));
        let now = monotonic_ns();
        let after = nanoseconds(clock_gettime(ClockId::Monotonic));
        assert!((before..=after).contains(&now), "{before} {now} {after}");
        let before = monotonic_ns();
        sleep_until(before + 2_000_000);
        assert!(monotonic_ns() - before >= 2_000_000);
    }
}
