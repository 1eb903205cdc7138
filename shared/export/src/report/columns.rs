//! The columns that the table and the analysis of a process share.

use profile::merge::ThreadProfile;

use super::numbers::{coverage, percent, seconds};

/// A column's name and what it says.
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) meaning: &'static str,
}

/// Waiting for a CPU.
pub(super) const RUNNABLE: Column = Column {
    name: "runnable",
    meaning: "seconds ready to run, waiting for a CPU",
};
/// Waiting for anything else.
pub(super) const BLOCKED: Column = Column {
    name: "blocked",
    meaning: "seconds waiting for anything else: locks, I/O, timers",
};
/// What the one before is of a life, which the first such column says.
pub(super) const SHARE: Column = Column {
    name: "%",
    meaning: "",
};

/// Times are in seconds, shares in per cent of the thread's own life.
pub(super) const COLUMNS: [Column; 12] = [
    Column {
        name: "TID",
        meaning: "the thread's ID",
    },
    Column {
        name: "role",
        meaning: "what the thread is, from its name; its files are named by it",
    },
    Column {
        name: "life",
        meaning: "seconds it lived inside the measured time",
    },
    Column {
        name: "running",
        meaning: "seconds on a CPU",
    },
    Column {
        name: "%",
        meaning: "share of its own life, here and below",
    },
    RUNNABLE,
    SHARE,
    BLOCKED,
    SHARE,
    Column {
        name: "covered",
        meaning: "share of its life that the flame graph accounts for, in %",
    },
    Column {
        name: "samples",
        meaning: "how often it was seen on a CPU; few samples, coarse shares",
    },
    Column {
        name: "switches",
        meaning: "context switches, voluntary (it blocked) + involuntary (it had to make room)",
    },
];

/// One row's cells.
pub(super) fn cells(thread: &ThreadProfile, role: &str) -> [String; 12] {
    Sums::of(thread).cells(thread.thread.id.tid.to_string(), role.to_owned())
}

/// Figures of one thread, or of several added up.
#[derive(Clone, Copy, Default)]
pub(super) struct Sums {
    pub(super) life: u64,
    /// The whole microseconds of each life: what the widths can add up to.
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

    /// Seconds in each state with their shares of the lives, and how much is covered.
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

/// One line for each column that needs words.
pub(super) fn legend<'a>(
    columns: impl IntoIterator<Item = &'a Column>,
) -> impl Iterator<Item = String> {
    columns
        .into_iter()
        .filter(|column| !column.meaning.is_empty())
        .map(|column| format!("{:<9} {}", column.name, column.meaning))
}
