//! Cost of BPF programs, from the kernel's statistics.

use std::collections::BTreeMap;
use std::fs;

use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions};

use crate::programs::peers::Profiler;

const STATISTICS: &str = "/proc/sys/kernel/bpf_stats_enabled";

/// Keeps the kernel's statistics of BPF programs on until dropped.
#[derive(Debug)]
pub struct Statistics;

impl Statistics {
    /// Turns the statistics on.
    ///
    /// # Panics
    ///
    /// Panics without root.
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

/// Loaded BPF program.
#[derive(Clone, Debug)]
pub struct Program {
    /// Name, which the kernel truncates.
    pub name: String,
    /// Total run time in ns.
    pub run_ns: u64,
    /// Number of runs.
    pub runs: u64,
}

/// Returns all loaded programs, by ID.
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

/// Cost of a profiler during some work.
#[derive(Debug)]
pub struct Cost<T> {
    /// BPF programs of the profiler, with their run time and runs during the work.
    pub ran: Vec<Program>,
    /// CPU time of the profiler's process in ns.
    pub cpu_ns: u64,
    /// Result of the work.
    pub done: T,
}

impl<T> Cost<T> {
    /// Returns the run time of all BPF programs of the profiler, in ns.
    pub fn run_ns(&self) -> u64 {
        self.ran.iter().map(|program| program.run_ns).sum()
    }
}

/// Measures the cost of a profiler that watches `pid`, while `busy` runs.
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
