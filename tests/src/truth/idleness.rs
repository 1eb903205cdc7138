//! Who had work while it was blocked: the threads of `tests/workloads/waits/idle.c`.

use crate::printed::folded::{Folded, Line, bare};

/// What such threads do.
pub struct Scenario {
    /// As the program knows it.
    pub name: &'static str,
    /// How much of what is idle can be told if the threads were there before the window: of
    /// two that take turns nobody can say who asks and who answers.
    pub recall: f64,
}

impl Scenario {
    /// All there are.
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

/// Blocked time of these threads, nanoseconds.
#[derive(Debug, Default)]
pub struct Times {
    /// Idle, and shown as that.
    pub idle: u64,
    /// Idle, and shown otherwise.
    pub missed: u64,
    /// Waiting, and shown as idle.
    pub wrong: u64,
    /// Waiting, and shown otherwise.
    pub waiting: u64,
}

impl Times {
    /// From blocked time with `--states --reasons`.
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

    /// All blocked time.
    #[must_use]
    pub fn blocked(&self) -> u64 {
        self.idle + self.missed + self.wrong + self.waiting
    }

    /// What is shown as idle.
    #[must_use]
    pub fn shown_idle(&self) -> u64 {
        self.idle + self.wrong
    }

    /// How much of what is shown as idle was.
    #[must_use]
    pub fn precision(&self) -> f64 {
        share(self.idle, self.shown_idle())
    }

    /// How much of what was idle is shown as that.
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

/// The program waits for somebody in these functions; for a lock it has work to do, too.
fn is_idle(line: &Line) -> bool {
    let awaits = line.frames.iter().any(|frame| frame.starts_with("await_"));
    !awaits && !line.leaf().starts_with("[lock: ")
}
