//! The command line of offcputime.
#![allow(rustdoc::broken_intra_doc_links, reason = "the text of --help")]

use std::path::PathBuf;

use clap::Parser;

/// Shows where threads block: the time they spend off the CPU, by stack.
///
/// Traces until Ctrl-C or for the given seconds, then prints one line per
/// stack in folded form: thread name, user frames from the root, kernel
/// frames, and the microseconds spent there.
#[derive(Parser, Debug)]
#[command(
    name = "offcputime",
    version,
    after_help = EXAMPLES,
    // After the seconds.
    mut_arg("command", |arg| arg.index(2))
)]
pub struct Arguments {
    #[command(flatten)]
    pub(crate) target: cli::TargetFlags,

    #[command(flatten)]
    pub(crate) intervals: cli::IntervalFlags,

    /// Of the intervals below -m count some, too: for each -m of a thread's time
    /// in them one, drawn by chance
    #[arg(long)]
    pub(crate) sample_short: bool,

    #[command(flatten)]
    pub(crate) stacks: cli::StackFlags,

    /// Tell blocked time (leaf frame ends in _[o]) from waiting for a CPU (_[r])
    #[arg(long)]
    pub(crate) states: bool,

    /// Print nanoseconds instead of microseconds
    #[arg(long)]
    pub(crate) nanoseconds: bool,

    /// Also write every thread's account (running, runnable, blocked) to FILE,
    /// as tab-separated values
    #[arg(long, value_name = "FILE")]
    pub(crate) clocks: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) output: cli::OutputFlags,

    #[command(flatten)]
    pub(crate) duration: cli::DurationFlags,

    #[command(flatten)]
    pub(crate) control: cli::ControlFlags,
}

const EXAMPLES: &str = "\
Examples:
  offcputime                      trace all threads until Ctrl-C
  offcputime 5                    ... for 5 seconds
  offcputime -m 1000              only waits of 1 ms and more
  offcputime -m 1000 --sample-short
                                  ... and of shorter ones one for each 1 ms
  offcputime -p 1234 10 | flamegraph.pl --color=io --countname=us > off.svg
  offcputime -p 1234,5678 -U      two processes, user stacks only
  offcputime -t 1235 --states     one thread; blocked and runnable time apart
  offcputime -o off.svg -- make   a command and all that it starts, to its end
  offcputime -p 1234 --thread-name '^io-'
                                  its threads that are called io-…
  offcputime -p 1234 --per-process
                                  processes apart: comm-PID
  offcputime -k --state 2         kernel threads in uninterruptible waits
  offcputime -p 1234 --clocks clocks.tsv -o off.folded 30";
