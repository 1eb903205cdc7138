//! The command line of offcputime.

use std::path::PathBuf;

use clap::Parser;
use cli::values;
use loader::{CallGraph, OffCpuFilter, Targets};

/// `enum` in `include/thread_clock.h`: which threads have a clock.
const ALL_THREADS: u32 = 0;
const USER_THREADS: u32 = 1;
const KERNEL_THREADS: u32 = 2;

/// Shows where threads block: the time they spend off the CPU, by stack.
///
/// Traces until Ctrl-C or for the given seconds, then prints one line per
/// stack in folded form: thread name, user frames from the root, kernel
/// frames, and the microseconds spent there.
#[derive(Parser, Debug)]
#[command(name = "offcputime", version, after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub target: cli::TargetFlags,

    /// Only user threads
    #[arg(short = 'u', long, conflicts_with_all = ["kernel_threads_only", "pids", "tids"])]
    pub user_threads_only: bool,

    /// Only kernel threads
    #[arg(short = 'k', long, conflicts_with_all = ["pids", "tids"])]
    pub kernel_threads_only: bool,

    #[command(flatten)]
    pub stacks: cli::StackFlags,

    /// How to walk user stacks: by tables made of .eh_frame (dwarf), by frame
    /// pointers (fp), or by tables and, in code that has none, frame pointers
    #[arg(
        long, value_name = "MODE", default_value = "auto",
        value_parser = CallGraph::by_name
    )]
    pub call_graph: CallGraph,

    /// Shortest time off the CPU that counts, in microseconds
    #[arg(
        short = 'm', long, value_name = "MIN_US", default_value = "1",
        allow_negative_numbers = true, value_parser = values::microseconds
    )]
    pub min_block_time: u64,

    /// Longest time off the CPU that counts, in microseconds [default: no limit]
    #[arg(
        short = 'M', long, value_name = "MAX_US",
        allow_negative_numbers = true, value_parser = values::microseconds
    )]
    pub max_block_time: Option<u64>,

    /// Only time that began in these task states: a mask of the kernel's
    /// TASK_ bits (1 interruptible, 2 uninterruptible), or 0 for runnable
    #[arg(
        long, value_name = "MASK", allow_negative_numbers = true,
        value_parser = values::task_states
    )]
    pub state: Option<u32>,

    /// Tell blocked time (leaf frame ends in _[o]) from waiting for a CPU (_[r])
    #[arg(long)]
    pub states: bool,

    /// Print nanoseconds instead of microseconds
    #[arg(long)]
    pub nanoseconds: bool,

    /// Also write every thread's account (running, runnable, blocked) to FILE,
    /// as tab-separated values
    #[arg(long, value_name = "FILE")]
    pub clocks: Option<PathBuf>,

    #[command(flatten)]
    pub output: cli::OutputFlags,

    #[command(flatten)]
    pub duration: cli::DurationFlags,

    #[command(flatten)]
    pub control: cli::ControlFlags,
}

const EXAMPLES: &str = "\
Examples:
  offcputime                      trace all threads until Ctrl-C
  offcputime 5                    ... for 5 seconds
  offcputime -m 1000              only waits of 1 ms and more
  offcputime -p 1234 10 | flamegraph.pl --color=io --countname=us > off.svg
  offcputime -p 1234,5678 -U      two processes, user stacks only
  offcputime -t 1235 --states     one thread; blocked and runnable time apart
  offcputime -k --state 2         kernel threads in uninterruptible waits
  offcputime -p 1234 --clocks clocks.tsv -o off.folded 30";

impl Arguments {
    /// Checks what clap cannot: values against each other and the machine.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        if let Some(max) = self.max_block_time
            && self.min_block_time >= max
        {
            return Err(cli::usage(format!(
                "-m {} is not below -M {max}: give -m a smaller or -M a larger number of microseconds",
                self.min_block_time
            )));
        }
        self.target.validate()
    }

    /// What to measure.
    pub(crate) fn targets(&self) -> Targets {
        Targets {
            pids: self.target.pids.clone(),
            tids: self.target.tids.clone(),
        }
    }

    /// `thread_kind` of the BPF program.
    pub(crate) fn thread_kind(&self) -> u32 {
        match (self.user_threads_only, self.kernel_threads_only) {
            (true, _) => USER_THREADS,
            (_, true) => KERNEL_THREADS,
            _ => ALL_THREADS,
        }
    }

    /// Which intervals count.
    pub(crate) fn filter(&self) -> OffCpuFilter {
        OffCpuFilter {
            min_ns: self.min_block_time.saturating_mul(1000),
            max_ns: self
                .max_block_time
                .map_or(u64::MAX, |max| max.saturating_mul(1000)),
            states: self.state,
        }
    }

    /// What is traced, in words, for the line that says so.
    pub(crate) fn subject(&self) -> String {
        match self.thread_kind() {
            USER_THREADS => "all user threads".to_owned(),
            KERNEL_THREADS => "all kernel threads".to_owned(),
            _ => self.target.subject(),
        }
    }
}
