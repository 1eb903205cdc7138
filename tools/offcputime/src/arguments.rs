//! The command line of offcputime.
#![allow(rustdoc::broken_intra_doc_links, reason = "the text of --help")]

use std::path::PathBuf;

use clap::Parser;
use cli::{Measured, Request};

/// Show where threads wait: off-CPU time by stack.
///
/// offcputime traces until Ctrl-C or for the given seconds. Then it prints one line per stack in
/// folded form: thread name, user frames from the root, kernel frames, and the time in
/// microseconds.
#[derive(Parser, Debug)]
#[command(
    name = "offcputime",
    version,
    after_long_help = EXAMPLES,
    // The command comes after the seconds.
    mut_arg("command", |arg| arg.index(2))
)]
pub struct Arguments {
    #[command(flatten)]
    pub(crate) target: cli::TargetFlags,

    #[command(flatten)]
    pub(crate) intervals: cli::IntervalFlags,

    /// Also sample intervals below -m: one per -m of accumulated time
    ///
    /// The interval is drawn at random, by thread.
    #[arg(long, help_heading = "Waits")]
    pub(crate) sample_short: bool,

    #[command(flatten)]
    pub(crate) stacks: cli::StackFlags,

    #[command(flatten)]
    pub(crate) output: cli::OutputFlags,

    /// Separate blocked time (leaf ends in _[o]) from waiting for a CPU (_[r])
    #[arg(long, help_heading = "Output")]
    pub(crate) states: bool,

    /// Print nanoseconds instead of microseconds
    #[arg(long, help_heading = "Output")]
    pub(crate) nanoseconds: bool,

    /// Also write each thread's running, runnable and blocked time to FILE, as TSV
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) clocks: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) goroutines: cli::GoroutineFlags,

    #[command(flatten)]
    pub(crate) duration: cli::DurationFlags,

    #[command(flatten)]
    pub(crate) control: cli::ControlFlags,

    #[command(flatten)]
    help: cli::HelpFlag,

    #[command(flatten)]
    version: cli::VersionFlag,
}

const EXAMPLES: &str = "\
Examples:
  offcputime                      trace all threads until Ctrl-C
  offcputime 5                    ... for 5 seconds
  offcputime -m 1000              only waits of 1 ms and more
  offcputime -m 1000 --sample-short
                                  ... and a sample of shorter ones: one per 1 ms
  offcputime -p 1234 10 | flamegraph.pl --color=io --countname=us > off.svg
  offcputime -p 1234,5678 -U      two processes, user stacks only
  offcputime -t 1235 --states     one thread, blocked and runnable time apart
  offcputime -o off.svg -- make   a command and its descendants, to its end
  offcputime -p 1234 --thread-name '^io-'
                                  its threads with names io-…
  offcputime -p 1234 --per-process
                                  one stack root per process: comm-PID
  offcputime -k --state 2         kernel threads in uninterruptible waits
  offcputime -p 1234 --goroutines goroutines.svg -o threads.svg 10
                                  a Go program: its threads, and its goroutines
  offcputime -p 1234 --clocks clocks.tsv -o off.folded 30";

impl Arguments {
    /// Returns these flags as a request of wallclock; `None` if wallclock makes no such request.
    #[must_use]
    pub fn request(&self) -> Option<Request> {
        let measured = Measured::OffCpu {
            min_block_us: self.intervals.min_block_time,
            short_are_sampled: self.sample_short,
        };
        let request = Request::decode(measured, &self.target, &self.stacks, &self.output);
        request.filter(|_| self.states)
    }
}
