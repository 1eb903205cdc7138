//! The command line of offcputime.

use std::path::PathBuf;

use clap::Parser;
use loader::{CallGraph, OffCpuFilter, StackChoice, Targets, ThreadKind};

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

    #[command(flatten)]
    pub intervals: cli::IntervalFlags,

    #[command(flatten)]
    pub stacks: cli::StackFlags,

    /// How to walk user stacks: by tables made of .eh_frame (dwarf), by frame
    /// pointers (fp), or by tables and, in code that has none, frame pointers
    #[arg(
        long, value_name = "MODE", default_value = "auto",
        value_parser = CallGraph::by_name
    )]
    pub call_graph: CallGraph,

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
        self.intervals.validate()?;
        self.target.validate()
    }

    /// What to measure.
    pub(crate) fn targets(&self) -> Targets {
        Targets {
            pids: self.target.pids.clone(),
            tids: self.target.tids.clone(),
        }
    }

    /// Which intervals count.
    pub(crate) fn filter(&self) -> OffCpuFilter {
        let flags = &self.intervals;
        let (min_ns, max_ns) = flags.lengths_ns();
        OffCpuFilter {
            kind: ThreadKind::new(flags.user_threads_only, flags.kernel_threads_only),
            min_ns,
            max_ns,
            states: flags.state,
        }
    }

    /// Which stacks are wanted.
    pub(crate) fn stacks(&self) -> StackChoice {
        StackChoice {
            user: !self.stacks.kernel_stacks_only,
            kernel: !self.stacks.user_stacks_only,
            call_graph: self.call_graph,
            per_thread: self.output.per_thread,
            per_process: self.output.per_thread || self.output.classic,
        }
    }

    /// What is traced, in words, for the line that says so.
    pub(crate) fn subject(&self) -> String {
        let all = self.intervals.subject().map(str::to_owned);
        all.unwrap_or_else(|| self.target.subject())
    }
}
