//! Idleness of the threads of `tests/workloads/waits/idle.c`. They are blocked with or without
//! work.

use crate::printed::folded::{Folded, Line, bare};

/// Scenario of the workload.
pub struct Scenario {
    /// Name in the workload.
    pub name: &'static str,
    /// Share of idle time that the tool can recognize if the threads exist before the window. If
    /// two threads take turns, nothing shows which thread asks and which one answers.
    pub recall: f64,
}

impl Scenario {
    /// All scenarios.
    pub const ALL: [Scenario; 5] = [
        Scenario {
            name: "pool",
            recall: 0.9,
        },
        Scenario {
            name: "server",
            recall: 0.9,
        },
        Scenario {
            name: "pipeline",
            recall: 0.9,
        },
        Scenario {
            name: "cron",
            recall: 0.4,
        },
        Scenario {
            name: "futures",
            recall: 0.4,
        },
    ];
}

/// Blocked time of the workload's threads, in ns.
#[derive(Debug, Default)]
pub struct Times {
    /// Time that was idle, and is shown as idle.
    pub idle: u64,
    /// Time that was idle, and is not shown as idle.
    pub missed: u64,
    /// Time with work, which is shown as idle.
    pub wrong: u64,
    /// Time with work, which is not shown as idle.
    pub waiting: u64,
}

impl Times {
    /// Sums up the blocked time in the output of `--states --reasons`.
    #[must_use]
    pub fn of(folded: &Folded) -> Times {
        let mut times = Times::default();
        let lines = folded.lines.iter();
        for line in lines.filter(|line| line.comm.starts_with("i_")) {
            let leaf = line.leaf();
            if !leaf.ends_with("]_[o]") {
                continue;
            }
            let is_shown = bare(leaf).ends_with(" (idle)]");
            *match (is_idle(line), is_shown) {
                (true, true) => &mut times.idle,
                (true, false) => &mut times.missed,
                (false, true) => &mut times.wrong,
                (false, false) => &mut times.waiting,
            } += line.value;
        }
        times
    }

    /// Returns all blocked time.
    #[must_use]
    pub fn blocked(&self) -> u64 {
        self.idle + self.missed + self.wrong + self.waiting
    }

    /// Returns the time that is shown as idle.
    #[must_use]
    pub fn shown_idle(&self) -> u64 {
        self.idle + self.wrong
    }

    /// Returns the idle share of the time that is shown as idle.
    #[must_use]
    pub fn precision(&self) -> f64 {
        share(self.idle, self.shown_idle())
    }

    /// Returns the share of idle time that is shown as idle.
    #[must_use]
    pub fn recall(&self) -> f64 {
        share(self.idle, self.idle + self.missed)
    }
}

fn share(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 1.0,
        _ => part as f64 / whole as f64,
    }
}

/// Returns whether the thread has no work. In a function `await_…` a thread waits for a result, so
/// it has work. A thread that waits for a lock has work, too.
fn is_idle(line: &Line) -> bool {
    let awaits = line.frames.iter().any(|frame| frame.starts_with("await_"));
    !awaits && !line.leaf().starts_with("[lock: ")
}
