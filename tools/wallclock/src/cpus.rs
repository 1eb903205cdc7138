//! The time of each CPU in the window, from the kernel's account in `/proc/stat`.
//!
//! `/proc/schedstat` has each CPU's time with threads in ns. But the kernel adds a thread's turn to
//! it only after the turn. The time of a thread that runs for seconds without a switch is missing.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use anyhow::Context;
use cli::monotonic_ns;
use report::{Cpu, Cpus};

/// Unit of times in `/proc/stat`, in ns: `USER_HZ` of the kernel's `include/asm-generic/param.h`.
const TICK_NS: u64 = 10_000_000;
const STAT: &str = "/proc/stat";

/// Readings of all CPUs at the window's edges.
pub(crate) struct CpuTimes {
    /// Set if a failed reading is an error.
    is_needed: bool,
    start: Option<Reading>,
    stop: Option<Reading>,
}

impl CpuTimes {
    /// Returns times without a reading. If `is_needed` is set, a failed reading is an error.
    pub(crate) fn new(is_needed: bool) -> CpuTimes {
        CpuTimes {
            is_needed,
            start: None,
            stop: None,
        }
    }

    /// Takes each reading that is due. One reading is due at the window's start and one at its end,
    /// both in ns of CLOCK_MONOTONIC.
    ///
    /// # Errors
    /// `/proc/stat` cannot be read, and is needed.
    pub(crate) fn read(&mut self, start: u64, stop: u64) -> anyhow::Result<()> {
        for (reading, edge) in [(&mut self.start, start), (&mut self.stop, stop)] {
            if reading.is_none() && monotonic_ns() >= edge {
                *reading = Some(match Reading::now() {
                    Err(_) if !self.is_needed => Reading::default(),
                    reading => reading?,
                });
            }
        }
        Ok(())
    }

    /// Returns the time from `now` until the next reading is due.
    pub(crate) fn patience(&self, now: u64, start: u64, stop: u64) -> Duration {
        let edge = match (&self.start, &self.stop) {
            (None, _) => start,
            (_, None) => stop,
            _ => u64::MAX,
        };
        Duration::from_nanos(edge.saturating_sub(now))
    }

    /// Returns the time of each CPU between the two readings; `None` if one is missing. `ran_ns` is
    /// the time that threads ran between the readings.
    pub(crate) fn between(&self, ran_ns: u64) -> Option<Cpus> {
        let cpus = self.stop.as_ref()?.since(self.start.as_ref()?);
        (!cpus.each.is_empty()).then_some(Cpus { ran_ns, ..cpus })
    }
}

/// One reading of all CPUs that are online; empty if the times could not be read.
#[derive(Default)]
struct Reading {
    at_ns: u64,
    cpus: BTreeMap<u32, Ticks>,
}

/// Times of a CPU since the machine started, in units of [`TICK_NS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticks {
    idle: u64,
    interrupts: u64,
    stolen: u64,
}

impl Reading {
    fn now() -> anyhow::Result<Reading> {
        let before = monotonic_ns();
        let text = fs::read_to_string(STAT).with_context(|| format!("cannot read {STAT}"))?;
        Ok(Reading {
            at_ns: u64::midpoint(before, monotonic_ns()),
            cpus: parse(&text),
        })
    }

    fn since(&self, earlier: &Reading) -> Cpus {
        let each = self.cpus.iter().filter_map(|(&number, now)| {
            let before = earlier.cpus.get(&number)?;
            // The kernel may correct the times of an idle CPU downwards later.
            let passed = |time: fn(&Ticks) -> u64| {
                let ticks = time(now).saturating_sub(time(before));
                ticks.saturating_mul(TICK_NS)
            };
            Some(Cpu {
                number,
                idle_ns: passed(|ticks| ticks.idle),
                interrupts_ns: passed(|ticks| ticks.interrupts),
                stolen_ns: passed(|ticks| ticks.stolen),
            })
        });
        let each: Vec<Cpu> = each.collect();
        let in_one_reading = self.cpus.len() + earlier.cpus.len() - 2 * each.len();
        Cpus {
            length_ns: self.at_ns.saturating_sub(earlier.at_ns),
            each,
            left_out: in_one_reading as u64,
            ..Cpus::default()
        }
    }
}

/// Parses the lines `cpuN user nice system idle iowait irq softirq steal …` of proc_stat(5).
fn parse(stat: &str) -> BTreeMap<u32, Ticks> {
    let cpu = |line: &str| {
        let (name, times) = line.split_once(' ')?;
        let number = name.strip_prefix("cpu")?.parse().ok()?;
        let times = times.split_ascii_whitespace().map(str::parse);
        let times: Vec<u64> = times.map_while(Result::ok).collect();
        let [_, _, _, idle, iowait, irq, softirq, stolen, ..] = times[..] else {
            return None;
        };
        let ticks = Ticks {
            idle: idle.saturating_add(iowait),
            interrupts: irq.saturating_add(softirq),
            stolen,
        };
        Some((number, ticks))
    };
    stat.lines().filter_map(cpu).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT_OF_TWO: &str = "\
cpu  300 0 60 500 20 7 9 3 0 0
cpu0 100 0 20 200 10 3 4 1 0 0
cpu12 200 0 40 300 10 4 5 2 0 0
intr 12345 0 6
ctxt 77
";

    #[test]
    fn lines_of_cpus_are_taken_and_no_others() {
        let ticks = |idle, interrupts, stolen| Ticks {
            idle,
            interrupts,
            stolen,
        };
        let expected = BTreeMap::from([(0, ticks(210, 7, 1)), (12, ticks(310, 9, 2))]);
        assert_eq!(parse(STAT_OF_TWO), expected);
        for damaged in [
            "",
            "cpu0",
            "cpu0 1 2 3",
            "cpux 1 2 3 4 5 6 7 8",
            "cpu0 a b c d",
        ] {
            assert!(parse(damaged).is_empty(), "{damaged}");
        }
    }

    #[test]
    fn what_passed_is_told_of_cpus_that_were_there_at_both_looks() {
        let reading = |at_ns, text: &str| Reading {
            at_ns,
            cpus: parse(text),
        };
        let earlier = reading(1_000, &format!("{STAT_OF_TWO}cpu13 1 1 1 1 1 1 1 1 0 0\n"));
        let later = "\
cpu0 150 0 20 240 11 2 8 4 0 0
cpu3 1 1 1 1 1 1 1 1 0 0
cpu4 1 1 1 1 1 1 1 1 0 0
cpu12 200 0 40 307 10 4 5 2 0 0
";
        let cpus = reading(1_001_000, later).since(&earlier);
        let expected = Cpu {
            number: 0,
            idle_ns: 410_000_000,
            // Three units more than in the first reading, in irq and softirq together.
            interrupts_ns: 30_000_000,
            stolen_ns: 30_000_000,
        };
        let other = Cpu {
            number: 12,
            idle_ns: 70_000_000,
            ..Cpu::default()
        };
        assert_eq!(cpus.each, [expected, other]);
        assert_eq!((cpus.length_ns, cpus.left_out), (1_000_000, 3));
    }
}
