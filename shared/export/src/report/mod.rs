//! Reports for people: tables of processes, of a process's threads and of CPUs, an analysis
//! of a process and one of a thread. Plain text, no colours, every column explained.

mod columns;
mod cpus;
mod known;
mod numbers;
mod process;
mod processes;
mod summary;
mod table;
mod thread;
mod tree;
mod waits;

use std::time::Duration;

use profile::merge::{Merged, ThreadProfile, Unclocked};
use profile::{Ending, Losses, Profile, Rate};

pub use cpus::{Cpu, Cpus, write as write_cpus};
pub use known::Known;
pub use process::write as write_process;
pub use processes::write as write_processes;
pub use table::write as write_table;
pub use thread::write as write_thread;
pub(crate) use waits::objects::Objects;

/// What was asked for and how it went: the same in all reports of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The time asked for.
    pub requested: Duration,
    /// The time measured.
    pub measured: Duration,
    /// Why measuring stopped.
    pub ending: Ending,
    /// Samples per second and CPU.
    pub frequency: u64,
    /// Off-CPU intervals below this many microseconds have no stacks of their own.
    pub min_block_us: u64,
    /// Whether some of these stand for all of them.
    pub short_are_sampled: bool,
    /// What oncputime could not keep.
    pub on_cpu_lost: Losses,
    /// What offcputime could not keep.
    pub off_cpu_lost: Losses,
    /// What was seen of threads without a clock.
    pub unclocked: Unclocked,
}

impl Run {
    /// What the profiles say of it that were merged.
    #[must_use]
    pub fn of(merged: &Merged) -> Run {
        let meta = &merged.profile.meta;
        let window = meta.window;
        Run {
            requested: Duration::from_nanos(match window.requested_ns {
                0 => window.length_ns,
                requested => requested,
            }),
            measured: Duration::from_nanos(window.length_ns),
            ending: window.ending,
            frequency: match meta.sampling.as_ref().map(|sampling| sampling.rate) {
                Some(Rate::Frequency(frequency)) => frequency,
                Some(Rate::Period(period)) => 1_000_000_000_u64.checked_div(period).unwrap_or(0),
                None => 0,
            },
            min_block_us: meta.lengths.map_or(0, |lengths| lengths.least / 1_000),
            short_are_sampled: meta
                .lengths
                .is_some_and(|lengths| lengths.short_are_sampled),
            on_cpu_lost: merged.on_cpu_lost,
            off_cpu_lost: merged.off_cpu_lost,
            unclocked: merged.unclocked,
        }
    }
}

/// A process and those of its threads that were seen.
#[derive(Clone, Debug)]
pub struct Process<'a> {
    /// Its ID.
    pub pid: u32,
    /// Its command line.
    pub command: &'a str,
    /// Its threads, in the order in which they are to be listed.
    pub threads: Vec<Row<'a>>,
    /// How many of them have files of their own.
    pub with_files: usize,
}

/// A thread and what it is called by.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    /// What its stacks refer to.
    pub profile: &'a Profile,
    /// The thread.
    pub thread: &'a ThreadProfile,
    /// What it is for, as in the names of its files.
    pub role: &'a str,
}

#[cfg(test)]
mod tests;
