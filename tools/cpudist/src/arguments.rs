//! The command line of cpudist.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::Resettable;
use clap::{Parser, ValueEnum};
use cli::values;
use collect::Question;
use profile::spans::{Apart, Kind, Scale};

use crate::thread_names::ThreadNames;

/// Shows how long threads stay on the CPU at a time, as a histogram; or off it.
///
/// A span on the CPU lasts from the switch to a thread to the switch away from
/// it, whatever the reason for that. Traces until Ctrl-C, or prints a
/// histogram every INTERVAL seconds, COUNT times. A span that is open at the
/// end of an interval counts there with its length so far, and in the next
/// interval with the rest: so each interval's total is the time that passed in
/// it, and threads that ran or slept through all of it are there.
///
/// With a cgroup as the target a span on the CPU counts if its thread is in the
/// cgroup at one of the two switches; one off it, as long as it is.
#[derive(Parser, Debug)]
#[command(
    name = "cpudist",
    version,
    after_help = EXAMPLES,
    // Here -L is bcc's flag, not another name for -t.
    mut_arg("tids", |arg| arg.visible_short_alias(Resettable::Reset)),
    mut_arg("command", |arg| arg.index(3))
)]
pub struct Arguments {
    /// Seconds between histograms, such as 10 or 0.5 [default: until Ctrl-C]
    #[arg(allow_negative_numbers = true, value_parser = values::seconds)]
    pub(crate) interval: Option<Duration>,

    /// How many histograms to print [default: until Ctrl-C]
    #[arg(allow_negative_numbers = true, value_parser = values::positive)]
    pub(crate) count: Option<u64>,

    #[command(flatten)]
    pub(crate) target: cli::TargetFlags,

    /// Spans off the CPU: from the switch away from a thread to the one back
    #[arg(short = 'O', long, group = "kind")]
    pub(crate) offcpu: bool,

    /// Spans blocked: off the CPU, up to the wake-up
    #[arg(long, group = "kind")]
    pub(crate) blocked: bool,

    /// Spans waiting for a CPU: off it, since the wake-up or the preemption
    #[arg(long, group = "kind")]
    pub(crate) runq: bool,

    /// Each process apart
    #[arg(short = 'P', long = "pids", conflicts_with_all = ["per_thread", "thread_name"])]
    pub(crate) per_process: bool,

    /// Each thread apart
    #[arg(short = 'L', long = "tids")]
    pub(crate) per_thread: bool,

    /// Count the idle task's spans on the CPU too, as PID and TID 0
    #[arg(short = 'I', long, conflicts_with_all = ["kind", "pids", "tids"])]
    pub(crate) include_idle: bool,

    /// Milliseconds instead of microseconds
    #[arg(short = 'm', long)]
    pub(crate) milliseconds: bool,

    /// The time of day with each histogram
    #[arg(short = 'T', long)]
    pub(crate) timestamp: bool,

    /// Average, total and count after each histogram
    #[arg(short = 'e', long)]
    pub(crate) extension: bool,

    /// A table of percentiles instead of histograms
    #[arg(long, conflicts_with_all = ["json", "extension"])]
    pub(crate) percentiles: bool,

    /// One JSON object per interval and line instead of histograms
    #[arg(long, conflicts_with = "extension")]
    pub(crate) json: bool,

    /// The same by their names, and log2 for histograms; or hgrm: nothing but the
    /// percentiles of the whole run, as --hgrm has them
    #[arg(
        long, value_name = "NAME", value_enum,
        conflicts_with_all = ["json", "percentiles"]
    )]
    pub(crate) format: Option<Form>,

    /// Also write the percentiles of the whole run to FILE, in HdrHistogram's
    /// format for its plotter
    #[arg(long, value_name = "FILE")]
    pub(crate) hgrm: Option<PathBuf>,

    /// Write to FILE, which appears only once it is whole
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

/// How intervals are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// Histograms.
    Log2,
    /// A table of percentiles.
    Percentiles,
    /// A JSON object each.
    Json,
    /// Percentiles of the whole run, for HdrHistogram's plotter.
    Hgrm,
}

const EXAMPLES: &str = "\
Examples:
  cpudist                         how long all threads run at a time, until Ctrl-C
  cpudist 1 10                    ten histograms of a second each
  cpudist -- make -j2             how long a command and all that it starts run at a time
  cpudist -p 1234 -O 5 1          how long the threads of a process are off the CPU
  cpudist --runq -m -T 1          how long threads wait for a CPU, in milliseconds
  cpudist -p 1234 -L --percentiles 10 1
                                  a table with a row for each thread
  cpudist -p 1234 --thread-name '^io-' 5 1
                                  its threads that are called io-…, all together
  cpudist -p 1234 --hgrm turns.hgrm 60 1
                                  for https://hdrhistogram.github.io/HdrHistogram/plotFiles.html";

impl Arguments {
    /// How intervals are to be printed.
    pub(crate) fn form(&self) -> Form {
        match self.format {
            Some(form) => form,
            None if self.json => Form::Json,
            None if self.percentiles => Form::Percentiles,
            None => Form::Log2,
        }
    }

    /// What to ask of the spans.
    pub(crate) fn question(&self) -> Question {
        Question {
            kind: match (self.offcpu, self.blocked, self.runq) {
                (true, _, _) => Kind::OffCpu,
                (_, true, _) => Kind::Blocked,
                (_, _, true) => Kind::Runnable,
                _ => Kind::Running,
            },
            apart: match (self.per_process, self.counts_threads()) {
                (true, _) => Some(Apart::Processes),
                (_, true) => Some(Apart::Threads),
                _ => None,
            },
            scale: if self.milliseconds {
                Scale::Milliseconds
            } else {
                Scale::Microseconds
            },
        }
    }

    /// Whether threads are counted apart: their names are known afterwards.
    fn counts_threads(&self) -> bool {
        self.per_thread || self.target.thread_name().is_some()
    }

    /// The threads that are chosen by their names.
    pub(crate) fn thread_names(&self) -> ThreadNames<'_> {
        ThreadNames::new(self.target.thread_name(), self.per_thread)
    }

    /// Checks what clap cannot.
    ///
    /// # Errors
    /// Flags that exclude each other.
    pub(crate) fn validate(&self) -> anyhow::Result<()> {
        if self.extension && self.form() != Form::Log2 {
            return Err(cli::usage(
                "-e adds to histograms: leave it out, or the other form",
            ));
        }
        self.target.validate()
    }

    /// How long to measure; none means until a signal arrives.
    pub(crate) fn duration(&self) -> Option<Duration> {
        let count = u32::try_from(self.count?).unwrap_or(u32::MAX);
        self.interval?.checked_mul(count)
    }
}
