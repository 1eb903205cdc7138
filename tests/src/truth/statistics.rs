//! What BPF programs cost, by the kernel's own statistics.

use std::collections::BTreeMap;
use std::fs;

use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions};

use crate::programs::peers::Profiler;

const STATISTICS: &str = "/proc/sys/kernel/bpf_stats_enabled";

/// Has the kernel keep statistics of BPF programs while it lives.
#[derive(Debug)]
pub struct Statistics;

impl Statistics {
    /// # Panics
    ///
    /// Without root.
    pub fn enable() -> Statistics {
        fs::write(STATISTICS, "1").expect("statistics of BPF programs, as root");
        Statistics
    }
}

impl Drop for Statistics {
    fn drop(&mut self) {
        let _ = fs::write(STATISTICS, "0");
    }
}

/// A program that is loaded.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its name, as far as the kernel keeps it.
    pub name: String,
    /// Nanoseconds that it ran.
    pub run_ns: u64,
    /// How often it ran.
    pub runs: u64,
}

/// All programs that are loaded, by ID.
pub fn programs() -> BTreeMap<u32, Program> {
    ProgInfoIter::with_query_opts(ProgInfoQueryOptions::default())
        .map(|found| {
            let program = Program {
                name: found.name.to_string_lossy().into_owned(),
                run_ns: found.run_time_ns,
                runs: found.run_cnt,
            };
            (found.id, program)
        })
        .collect()
}

/// What a profiler took in the time that something else lasted.
#[derive(Debug)]
pub struct Cost<T> {
    /// Its BPF programs, with the time and the runs of that time alone.
    pub ran: Vec<Program>,
    /// Nanoseconds of CPU time that its process had.
    pub cpu_ns: u64,
    /// What the other thing came to.
    pub done: T,
}

impl<T> Cost<T> {
    /// Nanoseconds of all of its BPF programs.
    pub fn run_ns(&self) -> u64 {
        self.ran.iter().map(|program| program.run_ns).sum()
    }
}

/// What a profiler took while `busy` did something.
pub fn cost_of<T>(profiler: &Profiler, pid: u32, busy: impl FnOnce() -> T) -> Cost<T> {
    let others = programs();
    let attached = profiler.attach(pid);
    let (before, cpu_ns, done, after) = {
        let _statistics = Statistics::enable();
        let (before, cpu_ns) = (programs(), attached.cpu_ns());
        let done = busy();
        (before, attached.cpu_ns() - cpu_ns, done, programs())
    };
    attached.stop();
    let its_own = after.into_iter().filter(|(id, _)| !others.contains_key(id));
    let ran = its_own.map(|(id, program)| {
        let earlier = before.get(&id);
        Program {
            run_ns: program.run_ns - earlier.map_or(0, |earlier| earlier.run_ns),
            runs: program.runs - earlier.map_or(0, |earlier| earlier.runs),
            ..program
        }
    });
    Cost {
        ran: ran.collect(),
        cpu_ns,
        done,
    }
}
