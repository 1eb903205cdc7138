//! The kernel's clocks, which BPF programs read and which time namespaces do not shift.

use std::fs;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

const NS_PER_S: i64 = 1_000_000_000;

/// Offsets of the clocks of this process's time namespace from the kernel's, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Offsets {
    monotonic: i64,
    boottime: i64,
}

/// Returns the time now, in ns of the kernel's `CLOCK_MONOTONIC`, as `bpf_ktime_get_ns()` has it.
#[must_use]
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let ns = now.tv_sec * NS_PER_S + now.tv_nsec;
    // The kernel's clock starts at boot: it is never negative.
    (ns - offsets().monotonic).cast_unsigned()
}

/// Returns by how many ns the start times in `/proc/PID/stat` are ahead of the kernel's, as
/// this process reads them: timens_add_boottime_ns() in fs/proc/array.c.
#[must_use]
pub fn boottime_offset_ns() -> i64 {
    offsets().boottime
}

/// Sleeps until `time` of [`monotonic_ns`].
pub fn sleep_until(time: u64) {
    let now = monotonic_ns();
    std::thread::sleep(Duration::from_nanos(time.saturating_sub(now)));
}

/// Returns the offsets of this process's time namespace, which a process enters before it is
/// executed.
fn offsets() -> Offsets {
    static OFFSETS: OnceLock<Offsets> = OnceLock::new();
    *OFFSETS.get_or_init(|| {
        // A kernel without time namespaces has no such file.
        let text = fs::read_to_string("/proc/self/timens_offsets");
        text.map_or(Offsets::default(), |text| parse(&text))
    })
}

/// Parses time_namespaces(7)'s `timens_offsets`: a clock, seconds and nanoseconds on each line.
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
