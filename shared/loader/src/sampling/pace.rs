//! Chooses the times at which a clock samples, so that no program can keep step with them.
//!
//! The kernel's clocks fire at a fixed period (`perf_swevent_hrtimer()` of `kernel/events/core.c`).
//! They would sample a program's action with the same period always, or never. They would also
//! sample all CPUs at the same moments. A clock restarts when it gets a new period. Each CPU's
//! clock therefore gets a new period every few samples, at a moment that is independent of the
//! programs. The time with one period is a stretch. A stretch may have too many or too few samples.
//! The next stretches compensate for them, so that the number of samples is the requested one.

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

/// Samples per stretch, if the stretch lasts at least [`SHORTEST_NS`].
const SAMPLES: Range<f64> = 3.0..6.0;
/// Minimum length of a stretch, in ns. It matters at high frequencies.
const SHORTEST_NS: f64 = 50e6;
/// Random deviation of a stretch's frequency from the requested one.
const SPREAD: Range<f64> = -0.15..0.15;
/// Maximum frequency of a stretch that compensates for missing samples, relative to the requested
/// one.
const FASTEST: f64 = 2.0;
/// Minimum frequency of a stretch that compensates for surplus samples, relative to the requested
/// one.
const SLOWEST: f64 = 0.5;

/// Pace of one CPU's clock.
pub(super) struct Pace {
    /// Requested period, in ns.
    mean: f64,
    /// Period in this stretch, in ns.
    period: u64,
    /// Start and end of the stretch, in ns of CLOCK_MONOTONIC.
    since: u64,
    until: u64,
    /// Samples that should have been taken by now, minus the taken ones.
    owed: f64,
    chance: Chance,
}

impl Pace {
    /// Makes the pace of a clock that takes `frequency` samples per second. The first period is due
    /// at once.
    pub(super) fn new(frequency: u64, now: u64) -> Pace {
        let mean = 1e9 / frequency.max(1) as f64;
        Pace {
            mean,
            period: u64::MAX,
            since: now,
            until: now,
            // A stretch begins with a period without a sample. On average over all times, the
            // number of samples is therefore a quarter of a sample too low.
            owed: 0.25,
            chance: Chance(RandomState::new().hash_one(now)),
        }
    }

    /// Returns the time at which the clock must restart, in ns of CLOCK_MONOTONIC.
    pub(super) fn until(&self) -> u64 {
        self.until
    }

    /// Ends the stretch at `now`. Returns the period of the next stretch, in ns.
    pub(super) fn next(&mut self, now: u64) -> u64 {
        let passed = now.saturating_sub(self.since);
        self.owed += passed as f64 / self.mean - (passed / self.period) as f64;

        let stretched = (SHORTEST_NS / (SAMPLES.start * self.mean)).max(1.0);
        let samples = self.chance.within(SAMPLES) * stretched;
        // The end of a stretch cuts off half a period on average, which is half a sample.
        let wanted = samples * (1.0 + self.chance.within(SPREAD)) + self.owed + 0.5;
        let length = samples * self.mean;
        let faster = (wanted / samples).clamp(SLOWEST, FASTEST);
        self.period = ((self.mean / faster) as u64).max(1);
        self.since = now;
        self.until = now.saturating_add(length as u64);
        self.period
    }
}

/// Generator of random numbers: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
struct Chance(u64);

impl Chance {
    fn within(&mut self, range: Range<f64>) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^= word >> 31;
        // A double has 53 bits of precision.
        let part = (word >> 11) as f64 / (1u64 << 53) as f64;
        range.start + part * (range.end - range.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Returns the times at which a clock fires within `seconds`, if the pacemaker checks the pace
    /// every `look` ns.
    fn fired(frequency: u64, look: u64, seconds: u64) -> Vec<u64> {
        let mut pace = Pace::new(frequency, 0);
        let (mut since, mut period) = (0, pace.next(0));
        let mut times = Vec::new();
        let mut now = 0;
        while now < seconds * SECOND {
            now += look;
            if now >= pace.until() {
                times.extend((1..=(now - since) / period).map(|turn| since + turn * period));
                (since, period) = (now, pace.next(now));
            }
        }
        times
    }

    #[test]
    fn as_many_samples_are_taken_as_were_asked_for() {
        for (frequency, look) in [(1, 5), (49, 5), (49, 100), (99, 5), (999, 5), (9999, 5)] {
            let seconds = 200;
            let times = fired(frequency, look * 1_000_000, seconds);
            let (taken, asked) = (times.len() as f64, (seconds * frequency) as f64);
            // No later stretch compensates for the last one.
            let late = (look * frequency) as f64 / 1000.0;
            let allowed = asked * 0.001 + 8.0 + late;
            assert!((taken - asked).abs() <= allowed, "{frequency}: {taken}");
        }
    }

    #[test]
    fn whenever_a_window_ends_it_has_its_samples() {
        const WINDOWS: u64 = 4000;
        let mut off = 0.0;
        for window in 0..WINDOWS {
            // Windows of at least half a second, which end at all phases of a period.
            let length = SECOND / 2 + window * SECOND / WINDOWS;
            let times = fired(49, 5_000_000, 2);
            let taken = times.iter().filter(|time| **time <= length).count();
            off += taken as f64 - length as f64 * 49e-9;
        }
        // The number of samples in a window is off by less than two.
        let mean = off / WINDOWS as f64;
        assert!(mean.abs() < 0.1, "{mean}");
    }

    #[test]
    fn no_period_is_in_step_with_it() {
        let frequency = 49;
        let times = fired(frequency, 5_000_000, 200);
        // The period of the frequency, two others nearby, its half and its double.
        for period in [20_408_163, 20_000_000, 19_000_000, 10_204_081, 40_816_326] {
            // The action takes a fifth of its period, at any of five phases.
            for begin in 0..5 {
                let hit = |time: &&u64| *time % period / (period / 5) == begin;
                let hits = times.iter().filter(hit).count() as f64;
                let expected = times.len() as f64 / 5.0;
                let off = (hits - expected).abs();
                // A clock that compensates stays slightly close to the moments of its own
                // frequency.
                let kept_to = expected / 20.0;
                let allowed = kept_to + 6.0 * expected.sqrt();
                assert!(off < allowed, "{period}: {hits}, {expected}");
            }
        }
    }

    #[test]
    fn clocks_are_out_of_step_with_each_other() {
        let (one, other) = (fired(49, 5_000_000, 100), fired(49, 5_000_000, 100));
        let near = |time: &&u64| {
            let after = other.partition_point(|at| at < time);
            let around = other.get(after.saturating_sub(1)..).unwrap_or_default();
            around
                .iter()
                .take(2)
                .any(|at| at.abs_diff(**time) < 204_081)
        };
        // 204,081 ns on both sides of a sample are 2 % of a period of 20.4 ms.
        let together = one.iter().filter(near).count() as f64;
        let expected = one.len() as f64 * 0.02;
        assert!(together < expected + 6.0 * expected.sqrt(), "{together}");
    }
}
