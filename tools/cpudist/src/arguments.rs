//! The command line of cpudist.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::Resettable;
use clap::{Parser, ValueEnum};
use cli::values;
use collect::Question;
use profile::spans::{Apart, Kind, Scale};

use crate::thread_names::ThreadNames;

/// Show how long threads run or wait at a time, as a histogram.
///
/// A span on the CPU lasts from the switch to a thread to the switch away from it. The tool traces
/// until Ctrl-C, or prints a histogram every PERIOD seconds, COUNT times.
///
/// A span that is open at the end of a period counts there with its length so far, and in the next
/// period with the rest. So the total of a period is the time that passed in it, and includes
/// threads that ran or slept throughout.
///
/// With a cgroup as the target, a span on the CPU counts if its thread is in the cgroup at one of
/// the two switches. A span off the CPU counts while its thread is in the cgroup.
#[derive(Parser, Debug)]
#[command(
    name = "cpudist",
    version,
    after_long_help = EXAMPLES,
    // In cpudist -L is bcc's flag, not another name for -t.
    mut_arg("tids", |arg| arg.visible_short_alias(Resettable::Reset)),
    mut_arg("command", |arg| arg.index(3))
)]
pub struct Arguments {
    /// Seconds between histograms, such as 10 or 0.5 [default: until Ctrl-C]
    #[arg(value_name = "PERIOD", allow_negative_numbers = true, value_parser = values::seconds)]
    pub(crate) period: Option<Duration>,

    /// Number of histograms to print [default: until Ctrl-C]
    #[arg(allow_negative_numbers = true, value_parser = values::positive)]
    pub(crate) count: Option<u64>,

    #[command(flatten)]
    pub(crate) target: cli::TargetFlags,

    /// Count spans off the CPU, from the switch away from a thread to the switch back
    #[arg(short = 'O', long, group = "kind", help_heading = SPANS)]
    pub(crate) offcpu: bool,

    /// Count blocked spans: off the CPU, up to the wake-up
    #[arg(long, group = "kind", help_heading = SPANS)]
    pub(crate) blocked: bool,

    /// Count spans of waiting for a CPU, since the wake-up or the preemption
    #[arg(long, group = "kind", help_heading = SPANS)]
    pub(crate) runq: bool,

    /// Print one histogram per process
    #[arg(short = 'P', long = "pids", help_heading = SPANS, conflicts_with_all = ["per_thread", "thread_name"])]
    pub(crate) per_process: bool,

    /// Print one histogram per thread
    #[arg(short = 'L', long = "tids", help_heading = SPANS)]
    pub(crate) per_thread: bool,

    /// Also count the idle task's spans on the CPU, as PID and TID 0
    #[arg(short = 'I', long, help_heading = SPANS, conflicts_with_all = ["kind", "pids", "tids"])]
    pub(crate) include_idle: bool,

    /// Print milliseconds instead of microseconds
    #[arg(short = 'm', long, help_heading = OUTPUT)]
    pub(crate) milliseconds: bool,

    /// Print the time of day before each histogram
    #[arg(short = 'T', long, help_heading = OUTPUT)]
    pub(crate) timestamp: bool,

    /// Print average, total and count after each histogram
    #[arg(short = 'e', long, help_heading = OUTPUT)]
    pub(crate) extension: bool,

    /// Print a table of percentiles instead of histograms
    #[arg(long, help_heading = OUTPUT, conflicts_with_all = ["json", "extension"])]
    pub(crate) percentiles: bool,

    /// Print one JSON object per period and line instead of histograms
    #[arg(long, help_heading = OUTPUT, conflicts_with = "extension")]
    pub(crate) json: bool,

    /// Print this format
    #[arg(
        long, value_name = "NAME", value_enum, help_heading = OUTPUT,
        conflicts_with_all = ["json", "percentiles"]
    )]
    pub(crate) format: Option<Form>,

    /// Also write percentiles of the whole run to FILE, for HdrHistogram's plotter
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) hgrm: Option<PathBuf>,

    /// Write to FILE, which appears only once it is whole
    #[arg(short = 'o', long = "output", value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) file: Option<PathBuf>,

    #[command(flatten)]
    help: cli::HelpFlag,

    #[command(flatten)]
    version: cli::VersionFlag,
}

/// Heading of the flags that choose spans.
const SPANS: &str = "Spans";
/// Heading of the flags that choose the output.
const OUTPUT: &str = "Output";

/// Format of the printed periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// Histograms by powers of two
    Log2,
    /// A table of percentiles
    Percentiles,
    /// One JSON object per period and line
    Json,
    /// Only the percentiles of the whole run, as --hgrm writes them
    Hgrm,
}

const EXAMPLES: &str = "\
Examples:
  cpudist                         time on the CPU of all threads, until Ctrl-C
  cpudist 1 10                    ten histograms of one second each
  cpudist -- make -j2             time on the CPU of a command and its descendants
  cpudist -p 1234 -O 5 1          time off the CPU of the threads of a process
  cpudist --runq -m -T 1          waits for a CPU, in milliseconds
  cpudist -p 1234 -L --percentiles 10 1
                                  a table with a row for each thread
  cpudist -p 1234 --thread-name '^io-' 5 1
                                  its threads with names io-…, all together
  cpudist -p 1234 --hgrm turns.hgrm 60 1
                                  for https://hdrhistogram.github.io/HdrHistogram/plotFiles.html";

impl Arguments {
    /// Returns the format of the printed periods.
    pub(crate) fn form(&self) -> Form {
        match self.format {
            Some(form) => form,
            None if self.json => Form::Json,
            None if self.percentiles => Form::Percentiles,
            None => Form::Log2,
        }
    }

    /// Returns which spans to count, and how.
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

    /// Returns whether cpudist counts each thread separately. It does so also to choose threads by
    /// name, because it learns the names afterwards.
    fn counts_threads(&self) -> bool {
        self.per_thread || self.target.thread_name().is_some()
    }

    /// Returns the filter of threads by name.
    pub(crate) fn thread_names(&self) -> ThreadNames<'_> {
        ThreadNames::new(self.target.thread_name(), self.per_thread)
    }

    /// Checks flags against each other and against the machine, which clap cannot do.
    ///
    /// # Errors
    /// Two flags exclude each other, or a target does not exist.
    pub(crate) fn validate(&self) -> anyhow::Result<()> {
        if self.extension && self.form() != Form::Log2 {
            return Err(cli::usage(
                "-e adds lines to histograms: leave out -e, or print histograms with --format log2",
            ));
        }
        self.target.validate()
    }

    /// Returns the length of the window; `None` means until a signal arrives.
    pub(crate) fn duration(&self) -> Option<Duration> {
        let count = u32::try_from(self.count?).unwrap_or(u32::MAX);
        self.period?.checked_mul(count)
    }
}
