//! The command line of oncputime.
#![allow(rustdoc::broken_intra_doc_links, reason = "the text of --help")]

use clap::Parser;
use cli::{Measured, Request, values};
use loader::Event;
use profile::Rate;

/// Default frequency in samples per second, as in bcc. The frequency divides no common timer
/// frequency, so samples do not run in step with the measured work.
const DEFAULT_FREQUENCY: u64 = 49;

/// Show where threads run: sampled stacks with their counts.
///
/// oncputime samples every CPU until Ctrl-C or for the given seconds. Then it prints one line per
/// stack in folded form: thread name, user frames from the root, kernel frames, and the number of
/// samples.
#[derive(Parser, Debug)]
#[command(
    name = "oncputime",
    version,
    after_long_help = EXAMPLES,
    // The command comes after the seconds.
    mut_arg("command", |arg| arg.index(2))
)]
pub struct Arguments {
    #[command(flatten)]
    pub(crate) target: cli::TargetFlags,

    /// Samples per second on each CPU [default: 49]
    #[arg(
        short = 'F', long, value_name = "HZ", help_heading = SAMPLING, conflicts_with = "count",
        allow_negative_numbers = true, value_parser = values::frequency
    )]
    pub(crate) frequency: Option<u64>,

    /// Take a sample every N events on a CPU, instead of -F
    #[arg(
        short = 'c', long, value_name = "N", help_heading = SAMPLING,
        allow_negative_numbers = true, value_parser = values::positive
    )]
    pub(crate) count: Option<u64>,

    /// Event that triggers samples, such as cache-misses [default: cpu-cycles]
    ///
    /// Events have perf's names: cpu-cycles, cpu-clock, instructions, cache-misses and others. The
    /// default is cpu-clock on a machine that does not count cycles.
    #[arg(short = 'e', long, value_name = "EVENT", help_heading = SAMPLING, value_parser = Event::by_name)]
    pub(crate) event: Option<Event>,

    /// Also sample idle CPUs
    #[arg(short = 'I', long, help_heading = SAMPLING)]
    pub(crate) include_idle: bool,

    /// Sample only this CPU
    #[arg(short = 'C', long, value_name = "CPU", help_heading = SAMPLING)]
    pub(crate) cpu: Option<u32>,

    #[command(flatten)]
    pub(crate) stacks: cli::StackFlags,

    #[command(flatten)]
    pub(crate) output: cli::OutputFlags,

    #[command(flatten)]
    pub(crate) duration: cli::DurationFlags,

    #[command(flatten)]
    pub(crate) control: cli::ControlFlags,

    #[command(flatten)]
    help: cli::HelpFlag,

    #[command(flatten)]
    version: cli::VersionFlag,
}

/// Heading of the flags that control sampling.
const SAMPLING: &str = "Sampling";

const EXAMPLES: &str = "\
Examples:
  oncputime                       sample all CPUs at 49 Hz until Ctrl-C
  oncputime -F 99 5               ... at 99 Hz for 5 seconds
  oncputime -p 1234 -F 49 10 | flamegraph.pl > on.svg
  oncputime -p 1234 --per-thread  one stack root per thread: comm-PID/TID
  oncputime --per-process 5       one stack root per process: comm-PID
  oncputime -p 1234 --thread-name worker
                                  only threads with `worker` in their names
  oncputime -L 1235 -U            one thread, user stacks only
  oncputime -e cache-misses -c 10000 5
                                  one sample per 10,000 cache misses
  oncputime -F 999 -o on.svg -- make
                                  a command and its descendants, to its end
  oncputime -C 3 -I 5             one CPU, including idle time";

impl Arguments {
    /// Returns these flags as a request of wallclock; `None` if wallclock makes no such request.
    #[must_use]
    pub fn request(&self) -> Option<Request> {
        let measured = match self.rate() {
            Rate::Frequency(frequency) => Measured::OnCpu { frequency },
            Rate::Period(_) => return None,
        };
        Request::decode(measured, &self.target, &self.stacks, &self.output)
    }

    /// Returns the sampling rate: a frequency, or a period in events.
    pub(crate) fn rate(&self) -> Rate {
        match self.count {
            Some(count) => Rate::Period(count),
            None => Rate::Frequency(self.frequency.unwrap_or(DEFAULT_FREQUENCY)),
        }
    }
}
