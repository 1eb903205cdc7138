//! The kernel's clocks, which BPF programs read. Time namespaces do not shift them.

use std::fs;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

const NS_PER_S: i64 = 1_000_000_000;

/// Offsets of the clocks in this process's time namespace from the kernel's clocks, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Offsets {
    monotonic: i64,
    boottime: i64,
}

/// Returns the time now, in ns of the kernel's `CLOCK_MONOTONIC`, like `bpf_ktime_get_ns()`.
#[must_use]
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let ns = now.tv_sec * NS_PER_S + now.tv_nsec;
    // The kernel's clock starts at 0 when the machine boots, so it is never negative.
    (ns - offsets().monotonic).cast_unsigned()
}

/// Returns the offset of the start times that this process reads in `/proc/PID/stat` from the
/// kernel's, in ns (timens_add_boottime_ns() in fs/proc/array.c).
#[must_use]
pub fn boottime_offset_ns() -> i64 {
    offsets().boottime
}

/// Sleeps until `time`, in ns of [`monotonic_ns`].
pub fn sleep_until(time: u64) {
    let now = monotonic_ns();
    std::thread::sleep(Duration::from_nanos(time.saturating_sub(now)));
}

/// Returns the offsets of this process's time namespace. They are fixed, because a process enters a
/// time namespace before it executes a program.
fn offsets() -> Offsets {
    static OFFSETS: OnceLock<Offsets> = OnceLock::new();
    *OFFSETS.get_or_init(|| {
        // Kernels without time namespaces lack this file.
        let text = fs::read_to_string("/proc/self/timens_offsets");
        text.map_or(Offsets::default(), |text| parse(&text))
    })
}

/// Parses `timens_offsets` (time_namespaces(7)). Each line has a clock, seconds and nanoseconds.
fn parse(text: &str) -> Offsets {
    let offset_of = |clock: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(clock));
        let mut fields = line.unwrap_or_default().split_whitespace();
        let mut number = || fields.next().and_then(|field| field.parse::<i64>().ok());
        number().unwrap_or(0) * NS_PER_S + number().unwrap_or(0)
    };
    Offsets {
        monotonic: offset_of("monotonic"),
        boottime: offset_of("boottime"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_read_by_clock() {
        let offsets = parse("monotonic     100000    5\nboottime           -7   500000000\n");
        assert_eq!(offsets.monotonic, 100_000_000_000_005);
        assert_eq!(offsets.boottime, -6_500_000_000);
        assert_eq!(parse(""), Offsets::default());
    }
}
