//! The command line.

use std::time::Duration;

use clap::Parser;
use cli::Processes;

const EXAMPLES: &str = "\
Examples:
  wallclock 1234                     # 30 s of process 1234
  wallclock mariadbd                 # whatever is called so
  wallclock 1234 -d 60 -f 99         # 60 s, 99 samples per second
  wallclock 1234 -m 100              # keep the stacks of waits from 100 µs on
  wallclock 1234 -o slow-start       # slow-start.svg, or slow-start/ for several threads
  wallclock 1234,5678 -o pair        # two processes: pair/pid1234/ and pair/pid5678/
  wallclock 1234 -o run.pb.gz        # for `go tool pprof`, all threads in one file
  wallclock 1234 --format svg,scope -o run
                                     # run.svg, and run.scope for `systemscope export`

Ctrl-C ends early with everything seen so far; a second one quits at once.";

/// What `-o` means here.
const OUTPUT: &str = "Where the files go: PREFIX.svg and so on, or the folder PREFIX/ for several threads [default: combined_profile_pid<PID>_<TIME>]; with --format, or with the ending of one, the file that all of it goes into";

/// Shows where the wall-clock time of every thread of a process goes: running,
/// waiting for a CPU or blocked, as flame graphs whose widths add up to each
/// thread's life.
#[derive(Debug, Parser)]
#[command(
    name = "wallclock",
    version,
    after_help = EXAMPLES,
    mut_arg("files", |arg| arg.value_name("PREFIX|FILE").help(OUTPUT))
)]
pub struct Arguments {
    /// Processes to measure, by ID or name: 1234 or 1234,mariadbd
    #[arg(
        value_name = "PIDS",
        required_unless_present_any = ["named", "matching"],
        value_delimiter = ',',
        allow_negative_numbers = true,
        value_parser = Processes::of
    )]
    processes: Vec<Processes>,

    /// Processes called so, by their first thread or their executable
    #[arg(short = 'n', long = "name", value_name = "NAME", value_parser = Processes::named)]
    named: Vec<Processes>,

    /// Processes with a name in which this regular expression is found
    #[arg(long = "name-regex", value_name = "REGEX", value_parser = Processes::matching)]
    matching: Vec<Processes>,

    /// Seconds to measure, such as 10 or 0.5
    #[arg(
        short = 'd',
        long,
        value_name = "SECONDS",
        default_value = "30",
        allow_negative_numbers = true,
        value_parser = cli::values::seconds
    )]
    pub(crate) duration: Duration,

    /// Samples per second and CPU
    #[arg(
        short = 'f',
        long,
        value_name = "HZ",
        default_value = "49",
        allow_negative_numbers = true,
        value_parser = cli::values::frequency
    )]
    pub(crate) frequency: u64,

    /// Keep the stacks of off-CPU intervals from this many microseconds on
    #[arg(
        short = 'm',
        long,
        value_name = "MIN_US",
        default_value = "1000",
        allow_negative_numbers = true,
        value_parser = cli::values::microseconds
    )]
    pub(crate) min_block_us: u64,

    /// How to walk user stacks: by tables made of .eh_frame (dwarf), by frame
    /// pointers (fp), or by tables and, in code that has none, frame pointers
    #[arg(long, value_name = "MODE", default_value = "auto", value_parser = ["auto", "fp", "dwarf"])]
    pub(crate) call_graph: String,

    #[command(flatten)]
    pub(crate) output: cli::FormatFlags,

    #[command(flatten)]
    pub(crate) frames: cli::FrameFlags,

    /// How many threads at most, those that lived longest, get files of their own
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) thread_files: usize,

    /// Pass on what oncputime and offcputime say
    #[arg(short = 'v', long)]
    pub(crate) verbose: bool,
}

impl Arguments {
    /// Which processes.
    pub(crate) fn chosen(&self) -> impl Iterator<Item = &Processes> + Clone {
        [&self.processes, &self.named, &self.matching]
            .into_iter()
            .flatten()
    }
}
