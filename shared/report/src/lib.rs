//! Reports for people. The overview fits a terminal. The analyses are plain text for files, with
//! every figure of a process, a thread, several processes or the CPUs.

mod columns;
mod cpus;
mod event_loop;
mod goroutines;
mod known;
pub mod overview;
mod place;
mod process;
mod processes;
mod settings;
mod summary;
mod thread;
mod tree;
mod waits;

use std::time::Duration;

use profile::merge::{Merged, ThreadProfile, Unclocked};
use profile::{Ending, Losses, Profile, Rate};

pub use cpus::{Cpu, Cpus, write as write_cpus};
pub use event_loop::{EventLoop, Turn, find_stacks};
pub use goroutines::{GoroutineWait, Goroutines};
pub use known::Known;
pub use process::write as write_process;
pub use processes::write as write_processes;
pub use thread::write as write_thread;
pub use waits::groups::{Group, Groups};
pub use waits::split::{Counted, Split, apportion, counted};

/// Settings and outcome of a run, which all its reports share.
#[derive(Clone, Debug)]
pub struct Run {
    /// Length that the user requested, or the length of the window if the user gave none.
    pub requested: Duration,
    /// Length of the window.
    pub measured: Duration,
    /// Cause of the window's end.
    pub ending: Ending,
    /// Samples per second and CPU.
    pub frequency: u64,
    /// Minimum length of off-CPU intervals that have stacks of their own, in µs.
    pub min_block_us: u64,
    /// Set if intervals shorter than that are sampled.
    pub short_are_sampled: bool,
    /// Losses of oncputime.
    pub on_cpu_lost: Losses,
    /// Losses of offcputime.
    pub off_cpu_lost: Losses,
    /// Samples and time of threads without a clock.
    pub unclocked: Unclocked,
    /// Number of CPUs online; 0 if it is not known.
    pub cpus: u32,
    /// Times of the CPUs, if they were measured.
    pub cpu_times: Option<Cpus>,
    /// Event loops of threads, if they were measured.
    pub event_loops: Vec<EventLoop>,
    /// Goroutines of Go programs, if they were sampled.
    pub goroutines: Vec<Goroutines>,
    /// Set if the whole machine was measured.
    pub is_of_machine: bool,
    /// End of the command that the profiler started, if there was one.
    pub command: Option<CommandEnd>,
}

/// End of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandEnd {
    /// The command exited with this status.
    Exited(i32),
    /// A signal with this number ended the command.
    Killed(i32),
    /// The command still runs.
    Running,
}

impl Run {
    /// Takes settings and losses from merged profiles.
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
            cpus: meta.cpus,
            cpu_times: None,
            event_loops: Vec::new(),
            goroutines: Vec::new(),
            is_of_machine: false,
            command: None,
        }
    }
}

/// A process with its measured threads.
#[derive(Clone, Debug)]
pub struct Process<'a> {
    /// The PID.
    pub pid: u32,
    /// The name of the first thread.
    pub name: &'a str,
    /// The command line.
    pub command: &'a str,
    /// The threads, in the order in which reports list them.
    pub threads: Vec<Row<'a>>,
    /// Number of threads with files of their own.
    pub with_files: usize,
}

/// A thread with its role.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    /// The profile that the stacks refer to.
    pub profile: &'a Profile,
    /// The thread.
    pub thread: &'a ThreadProfile,
    /// The thread's role, as in the names of its files.
    pub role: &'a str,
}

// The profiles that the tests of formats use.
#[cfg(test)]
#[allow(dead_code)]
#[path = "../../export/src/fixture.rs"]
mod fixture;
#[cfg(test)]
mod tests;
