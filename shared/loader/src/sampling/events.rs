//! Events that can trigger samples, by perf's names.

use profile::Rate;

use super::open;
use crate::cpus::online_cpus;

/// Event whose occurrences trigger samples, such as a hardware cycle or a clock tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Name of the event in perf.
    pub name: &'static str,
    pub(super) kind: u32,
    pub(super) config: u32,
}

/// Hardware events (type 0) and software events (type 1) of include/uapi/linux/perf_event.h, with
/// the names of perf-list(1).
const EVENTS: &[Event] = &[
    Event {
        name: "cpu-cycles",
        kind: 0,
        config: 0,
    },
    Event {
        name: "cycles",
        kind: 0,
        config: 0,
    },
    Event {
        name: "instructions",
        kind: 0,
        config: 1,
    },
    Event {
        name: "cache-references",
        kind: 0,
        config: 2,
    },
    Event {
        name: "cache-misses",
        kind: 0,
        config: 3,
    },
    Event {
        name: "branch-instructions",
        kind: 0,
        config: 4,
    },
    Event {
        name: "branches",
        kind: 0,
        config: 4,
    },
    Event {
        name: "branch-misses",
        kind: 0,
        config: 5,
    },
    Event {
        name: "bus-cycles",
        kind: 0,
        config: 6,
    },
    Event {
        name: "stalled-cycles-frontend",
        kind: 0,
        config: 7,
    },
    Event {
        name: "stalled-cycles-backend",
        kind: 0,
        config: 8,
    },
    Event {
        name: "ref-cycles",
        kind: 0,
        config: 9,
    },
    Event {
        name: "cpu-clock",
        kind: 1,
        config: 0,
    },
    Event {
        name: "task-clock",
        kind: 1,
        config: 1,
    },
    Event {
        name: "page-faults",
        kind: 1,
        config: 2,
    },
    Event {
        name: "faults",
        kind: 1,
        config: 2,
    },
    Event {
        name: "context-switches",
        kind: 1,
        config: 3,
    },
    Event {
        name: "cs",
        kind: 1,
        config: 3,
    },
    Event {
        name: "cpu-migrations",
        kind: 1,
        config: 4,
    },
    Event {
        name: "migrations",
        kind: 1,
        config: 4,
    },
    Event {
        name: "minor-faults",
        kind: 1,
        config: 5,
    },
    Event {
        name: "major-faults",
        kind: 1,
        config: 6,
    },
    Event {
        name: "alignment-faults",
        kind: 1,
        config: 7,
    },
    Event {
        name: "emulation-faults",
        kind: 1,
        config: 8,
    },
];

impl Event {
    /// Hardware cycles. They also sample code that runs with interrupts off.
    pub const CPU_CYCLES: Event = EVENTS[0];
    /// Software clock, which every machine has.
    pub const CPU_CLOCK: Event = EVENTS[12];

    /// Returns whether this machine counts the event. Virtual machines often have no hardware
    /// counters.
    #[must_use]
    pub fn is_counted(self) -> bool {
        let any = Rate::Frequency(1);
        let cpus = online_cpus().unwrap_or_default();
        cpus.first()
            .is_some_and(|cpu| open(self, any, *cpu).is_ok())
    }

    /// Returns whether the event counts nanoseconds. The kernel then uses a timer with a fixed
    /// period.
    pub(super) fn is_clock(self) -> bool {
        ["cpu-clock", "task-clock"].contains(&self.name)
    }

    /// Returns the event with this name in perf. The error lists all names.
    pub fn by_name(name: &str) -> std::result::Result<Event, String> {
        EVENTS
            .iter()
            .find(|event| event.name == name)
            .copied()
            .ok_or_else(|| {
                let names: Vec<&str> = EVENTS.iter().map(|event| event.name).collect();
                format!("no such event; give one of {}", names.join(", "))
            })
    }
}
