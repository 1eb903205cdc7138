//! What BPF programs cost, by the kernel's own statistics.

use std::collections::BTreeMap;
use std::fs;

use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions};

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
