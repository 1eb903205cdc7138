//! Columns that the table of processes and the analysis of a process share.

use export::text::numbers::{coverage, percent, seconds};
use profile::merge::ThreadProfile;

/// Names of the columns. Times are in seconds, shares in per cent of the thread's own life.
pub(super) const COLUMNS: [&str; 12] = [
    "TID", "role", "life", "running", "%", "runnable", "%", "blocked", "%", "covered", "samples",
    "switches",
];

/// Reference to the explanation of the columns.
pub(super) const EXPLAINED: &str = "`wallclock --explain` says what the columns mean.";

/// Returns the cells of a thread's row.
pub(super) fn cells(thread: &ThreadProfile, role: &str) -> [String; 12] {
    Sums::of(thread).cells(thread.thread.id.tid.to_string(), role.to_owned())
}

/// Figures of one thread, or sums over several threads. Times are in ns.
#[derive(Clone, Copy, Default)]
pub(super) struct Sums {
    pub(super) life: u64,
    /// Each life in whole microseconds, in ns: the maximum that the widths of a flame graph add up
    /// to.
    coverable: u64,
    pub(super) running: u64,
    pub(super) runnable: u64,
    pub(super) blocked: u64,
    pub(super) accounted: u64,
    pub(super) samples: u64,
    pub(super) voluntary: u64,
    pub(super) involuntary: u64,
}

impl Sums {
    pub(super) fn of(thread: &ThreadProfile) -> Sums {
        let clock = thread.thread.clock;
        Sums {
            life: thread.lifetime_ns,
            coverable: thread.lifetime_ns / 1_000 * 1_000,
            running: clock.running_ns,
            runnable: clock.runnable_ns,
            blocked: clock.blocked_ns,
            accounted: thread.accounted_ns(),
            samples: thread.samples,
            voluntary: clock.voluntary,
            involuntary: clock.involuntary,
        }
    }

    pub(super) fn over<'a>(threads: impl Iterator<Item = &'a ThreadProfile>) -> Sums {
        threads
            .map(Sums::of)
            .fold(Sums::default(), |sum, one| Sums {
                life: sum.life + one.life,
                coverable: sum.coverable + one.coverable,
                running: sum.running + one.running,
                runnable: sum.runnable + one.runnable,
                blocked: sum.blocked + one.blocked,
                accounted: sum.accounted + one.accounted,
                samples: sum.samples + one.samples,
                voluntary: sum.voluntary + one.voluntary,
                involuntary: sum.involuntary + one.involuntary,
            })
    }

    pub(super) fn cells(&self, tid: String, role: String) -> [String; 12] {
        let [running, ran, runnable, waited, blocked, slept, covered] = self.state_cells();
        [
            tid,
            role,
            seconds(self.life),
            running,
            ran,
            runnable,
            waited,
            blocked,
            slept,
            covered,
            self.samples.to_string(),
            format!("{} + {}", self.voluntary, self.involuntary),
        ]
    }

    /// Returns the seconds in each state with their shares of the lives, and the coverage.
    pub(super) fn state_cells(&self) -> [String; 7] {
        [
            seconds(self.running),
            percent(self.running, self.life),
            seconds(self.runnable),
            percent(self.runnable, self.life),
            seconds(self.blocked),
            percent(self.blocked, self.life),
            coverage(self.coverage()),
        ]
    }

    fn coverage(&self) -> Option<f64> {
        (self.coverable > 0).then(|| self.accounted as f64 / self.coverable as f64)
    }
}
