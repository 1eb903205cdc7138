//! The command line of oncputime.
#![allow(rustdoc::broken_intra_doc_links, reason = "the text of --help")]

use clap::Parser;
use cli::values;
use loader::Event;
use profile::Rate;

/// bcc's default: not a divisor of common timer frequencies, so that samples
/// do not run in step with what they measure.
const DEFAULT_FREQUENCY: u64 = 49;

/// Shows where threads run: samples of their stacks, counted.
///
/// Samples every CPU until Ctrl-C or for the given seconds, then prints one
/// line per stack in folded form: thread name, user frames from the root,
/// kernel frames, and the number of samples.
#[derive(Parser, Debug)]
#[command(
    name = "oncputime",
    version,
    after_help = EXAMPLES,
    // After the seconds.
    mut_arg("command", |arg| arg.index(2))
)]
pub struct Arguments {
    #[command(flatten)]
    pub(crate) target: cli::TargetFlags,

    /// Samples a second on each CPU [default: 49]
    #[arg(
        short = 'F', long, value_name = "HZ", conflicts_with = "count",
        allow_negative_numbers = true, value_parser = values::frequency
    )]
    pub(crate) frequency: Option<u64>,

    /// Sample each time that N events have happened on a CPU
    #[arg(
        short = 'c', long, value_name = "N",
        allow_negative_numbers = true, value_parser = values::positive
    )]
    pub(crate) count: Option<u64>,

    /// What drives the samples, by perf's names: cpu-cycles, cpu-clock,
    /// instructions, cache-misses, ... [default: cpu-cycles, or cpu-clock
    /// where the machine does not count cycles]
    #[arg(short = 'e', long, value_name = "EVENT", value_parser = Event::by_name)]
    pub(crate) event: Option<Event>,

    #[command(flatten)]
    pub(crate) stacks: cli::StackFlags,

    /// Also sample the idle CPUs
    #[arg(short = 'I', long)]
    pub(crate) include_idle: bool,

    /// Sample only this CPU
    #[arg(short = 'C', long, value_name = "CPU")]
    pub(crate) cpu: Option<u32>,

    #[command(flatten)]
    pub(crate) output: cli::OutputFlags,

    #[command(flatten)]
    pub(crate) duration: cli::DurationFlags,

    #[command(flatten)]
    pub(crate) control: cli::ControlFlags,
}

const EXAMPLES: &str = "\
Examples:
  oncputime                       sample all CPUs at 49 Hz until Ctrl-C
  oncputime -F 99 5               ... at 99 Hz for 5 seconds
  oncputime -p 1234 -F 49 10 | flamegraph.pl > on.svg
  oncputime -p 1234 --per-thread  threads apart: comm-PID/TID
  oncputime --per-process 5       processes apart: comm-PID
  oncputime -p 1234 --thread-name worker
                                  only threads with worker in their names
  oncputime -L 1235 -U            one thread, user stacks only
  oncputime -e cache-misses -c 10000 5
                                  a sample for every 10,000 cache misses
  oncputime -F 999 -o on.svg -- make
                                  a command and all that it starts, to its end
  oncputime -C 3 -I 5             one CPU, idle time included";

impl Arguments {
    /// How often to sample.
    pub(crate) fn rate(&self) -> Rate {
        match self.count {
            Some(count) => Rate::Period(count),
            None => Rate::Frequency(self.frequency.unwrap_or(DEFAULT_FREQUENCY)),
        }
    }
}
