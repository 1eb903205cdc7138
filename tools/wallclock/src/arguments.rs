//! The command line.

use std::time::Duration;

use clap::Parser;
use clap::builder::Resettable;

use crate::tables::Limits;

/// How long processes are measured if nobody says so.
const USUAL_DURATION: Duration = Duration::from_secs(30);

const EXAMPLES: &str = "\
Examples:
  wallclock 1234                     # 30 s of process 1234
  wallclock mariadbd                 # whatever is called so
  wallclock -- make -j2              # a command and all that it starts, to its end
  wallclock --unit nginx -d 60       # a service's processes, as they come and go
  wallclock 1234 -d 60 -f 99         # 60 s, 99 samples per second
  wallclock 1234 -m 100              # keep the stacks of all waits from 100 µs on
  wallclock 1234 -o slow-start       # slow-start.svg, or slow-start/ for several threads
  wallclock 1234,5678 -o pair        # two processes: pair/pid1234/ and pair/pid5678/
  wallclock 1234 --thread-name ^io-  # its threads that are called io-…
  wallclock --all -d 10              # the whole machine: processes, and what the CPUs did
  wallclock 1234 -o run.pb.gz        # for `go tool pprof`, all threads in one file
  wallclock 1234 --format svg,scope -o run
                                     # run.svg, and run.scope for `systemscope export`

Ctrl-C ends early with everything seen so far; a second one quits at once.";

/// What `-o` means here.
const OUTPUT: &str = "Where the files go: PREFIX.svg and so on, or the folder PREFIX/ for several threads [default: combined_profile_pid<PID>_<TIME>, or _all_<TIME>]; with --format, or with the ending of one, the file that all of it goes into";

/// Shows where the wall-clock time of every thread of a process goes: running,
/// waiting for a CPU or blocked, as flame graphs whose widths add up to each
/// thread's life.
#[derive(Debug, Parser)]
#[command(
    name = "wallclock",
    version,
    after_help = EXAMPLES,
    // The first of these flags has no name here.
    mut_arg("chosen", |arg| {
        arg.short(Resettable::Reset)
            .long(Resettable::Reset)
            .index(1)
            .num_args(1..)
            .required_unless_present_any([
                "named", "matching", "command", "cgroup_paths", "units", "containers",
                "cgroupmap", "mntnsmap", "all",
            ])
    }),
    mut_arg("command", |arg| arg.index(2)),
    mut_arg("files", |arg| arg.value_name("PREFIX|FILE").help(OUTPUT))
)]
pub struct Arguments {
    #[command(flatten)]
    pub(crate) processes: cli::ProcessFlags,

    #[command(flatten)]
    pub(crate) command: cli::CommandFlags,

    #[command(flatten)]
    pub(crate) cgroups: cli::CgroupFlags,

    #[command(flatten)]
    pub(crate) wait: cli::WaitFlags,

    #[command(flatten)]
    pub(crate) maps: cli::PinnedMapFlags,

    /// The whole machine: every process, the kernel's own threads, and what the CPUs
    /// did, in one flame graph and one report
    #[arg(long, conflicts_with_all = ["pids", "cgroups", "wait", "command"])]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) thread_name: cli::ThreadNameFlags,

    /// Seconds to measure, such as 10 or 0.5 [default: 30; a COMMAND to its end]
    #[arg(
        short = 'd',
        long,
        value_name = "SECONDS",
        allow_negative_numbers = true,
        value_parser = cli::values::seconds
    )]
    duration: Option<Duration>,

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

    /// Keep the stacks of all off-CPU intervals from this many microseconds on, and of
    /// shorter ones one for each so much of a thread's time in them
    #[arg(
        short = 'm',
        long,
        value_name = "MIN_US",
        default_value = "1000",
        allow_negative_numbers = true,
        value_parser = cli::values::microseconds
    )]
    pub(crate) min_block_us: u64,

    #[command(flatten)]
    pub(crate) walk: cli::WalkFlags,

    #[command(flatten)]
    pub(crate) output: cli::FormatFlags,

    #[command(flatten)]
    pub(crate) frames: cli::FrameFlags,

    /// How many threads at most, those that lived longest, get files of their own
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) thread_files: usize,

    /// Processes that are listed where there are several, with their ancestors: those with
    /// most work; the others are one row
    #[arg(long = "processes", value_name = "N", default_value_t = Limits::default().processes)]
    pub(crate) processes_listed: usize,

    /// Pass on what oncputime and offcputime say, and print details on sampling and losses
    #[arg(short = 'v', long)]
    pub(crate) verbose: bool,

    /// Explain the lines and columns of reports, and exit
    #[arg(long, exclusive = true)]
    pub(crate) explain: bool,
}

impl Arguments {
    /// How long to measure; none means until the command has ended.
    pub(crate) fn duration(&self) -> Option<Duration> {
        let usual = (!self.command.is_given()).then_some(USUAL_DURATION);
        self.duration.or(usual)
    }
}
