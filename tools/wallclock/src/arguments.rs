//! The command line of wallclock.

use std::time::Duration;

use clap::Parser;
use clap::builder::Resettable;
use cli::Recorder;

use crate::tables::Limits;

/// Default length of the window for processes.
const DEFAULT_DURATION: Duration = Duration::from_secs(30);

const EXAMPLES: &str = "\
Examples:
  wallclock 1234                     # 30 s of process 1234
  wallclock mariadbd                 # all processes of this name
  wallclock -- make -j2              # a command and its descendants, to its end
  wallclock --unit nginx -d 60       # a service's processes, as they come and go
  wallclock 1234 -d 60 -f 99         # 60 s, 99 samples per second and CPU
  wallclock 1234 -m 100              # keep the stacks of all waits of 100 µs or more
  wallclock 1234 -o slow-start       # slow-start.html and others; for several threads
                                     # slow-start/report.html and slow-start/files/
  wallclock 1234,5678 -o pair        # also pair/files/pid1234/ and pair/files/pid5678/
  wallclock 1234 -o page.html        # the page alone
  wallclock 1234 --thread-name ^io-  # its threads with names io-…
  wallclock --all -d 10              # the whole machine: processes, and what the CPUs did
  wallclock 1234 -o run.pb.gz        # for `go tool pprof`, all threads in one file
  wallclock 1234 --format svg,scope -o run
                                     # run.svg, and run.scope for `systemscope export`

Ctrl-C ends the window early and writes the results; a second one quits at once.";

/// Short help of `-o`.
const OUTPUT: &str = "Write PREFIX.html and others, or a folder PREFIX/; or FILE in one format";

/// Long help of `-o`.
const OUTPUT_IN_FULL: &str = "Write PREFIX.html and other files, or the folder PREFIX/ for several threads [default: combined_profile_pid<PID>_<TIME>, or combined_profile_all_<TIME>]. With --format, or with the ending of a format, write everything to FILE in that format";

/// Show where the time of every thread goes: running, waiting for a CPU, or blocked.
///
/// wallclock prints a report, and writes a page for the browser and flame graphs, in which the widths of a thread's stacks add up to
/// its life in the window.
#[derive(Debug, Parser)]
#[command(
    name = "wallclock",
    version,
    after_long_help = EXAMPLES,
    // Processes are an argument here, and a flag in the other tools.
    mut_arg("chosen", |arg| {
        arg.short(Resettable::Reset)
            .long(Resettable::Reset)
            .index(1)
            .help_heading(Resettable::Reset)
            .num_args(1..)
            .required_unless_present_any([
                "named", "matching", "command", "cgroup_paths", "units", "containers",
                "cgroupmap", "mntnsmap", "all",
            ])
    }),
    mut_arg("command", |arg| arg.index(2)),
    mut_arg("files", |arg| arg.value_name("PREFIX|FILE").help(OUTPUT).long_help(OUTPUT_IN_FULL))
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

    /// Measure the whole machine: every process, kernel threads, and the CPUs
    ///
    /// The result is one flame graph and one report.
    #[arg(long, help_heading = "Targets", conflicts_with_all = ["pids", "cgroups", "wait", "command"])]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) thread_name: cli::ThreadNameFlags,

    /// Seconds to measure [default: 30, or until the COMMAND ends; with --last until it writes]
    #[arg(
        short = 'd',
        long,
        help_heading = "Time",
        value_name = "SECONDS",
        allow_negative_numbers = true,
        value_parser = cli::values::seconds
    )]
    duration: Option<Duration>,

    /// Start the window at the next multiple of PERIOD in wall-clock time, such as /10s
    ///
    /// Captures of several hosts then cover the same time.
    #[arg(long, help_heading = "Time", value_name = "PERIOD", hide_short_help = true, value_parser = cli::StartAt::parse)]
    pub(crate) start_at: Option<cli::StartAt>,

    /// Samples per second on each CPU
    #[arg(
        short = 'f',
        long,
        help_heading = "Time",
        value_name = "HZ",
        default_value = "49",
        allow_negative_numbers = true,
        value_parser = cli::values::frequency
    )]
    pub(crate) frequency: u64,

    /// Keep stacks of all waits of at least this many microseconds
    ///
    /// Shorter waits are sampled: one stack per -m of accumulated time, by thread.
    #[arg(
        short = 'm',
        long,
        help_heading = "Waits",
        value_name = "MIN_US",
        default_value = "1000",
        allow_negative_numbers = true,
        value_parser = cli::values::microseconds
    )]
    pub(crate) min_block_us: u64,

    /// Samples of the goroutines of Go programs a second; 0 for none
    ///
    /// The list of goroutines is read from memory. There are fewer samples if they would take more
    /// than 2 % of a CPU.
    #[arg(
        long,
        help_heading = "Waits",
        hide_short_help = true,
        value_name = "HZ",
        default_value = "10",
        value_parser = clap::value_parser!(u32).range(0..=1000)
    )]
    pub(crate) goroutine_rate: u32,

    #[command(flatten)]
    pub(crate) walk: cli::WalkFlags,

    #[command(flatten)]
    pub(crate) debuginfod: cli::DebuginfodFlags,

    #[command(flatten)]
    pub(crate) output: cli::FormatFlags,

    #[command(flatten)]
    pub(crate) frames: cli::FrameFlags,

    #[command(flatten)]
    pub(crate) timeline: cli::TimelineFlags,

    /// Maximum threads with files of their own, the longest-lived first
    #[arg(
        long,
        help_heading = "Output",
        hide_short_help = true,
        value_name = "N",
        default_value_t = 1000
    )]
    pub(crate) thread_files: usize,

    /// Maximum processes listed, the busiest first
    ///
    /// Their ancestors are listed as well. All other processes are one row.
    #[arg(help_heading = "Output", hide_short_help = true, long = "processes", value_name = "N", default_value_t = Limits::default().processes)]
    pub(crate) processes_listed: usize,

    /// Print the messages of oncputime and offcputime, and details on sampling and losses
    #[arg(short = 'v', long, help_heading = "Output")]
    pub(crate) verbose: bool,

    /// Explain the lines and columns of reports, and exit
    #[arg(long, exclusive = true, help_heading = "Output")]
    pub(crate) explain: bool,

    #[command(flatten)]
    help: cli::HelpFlag,

    #[command(flatten)]
    version: cli::VersionFlag,
}

impl Arguments {
    /// Returns the minimum length of an interval with an entry of its own in the timeline, in µs,
    /// if the flags or a format ask for a timeline.
    pub(crate) fn timeline_min_us(&self) -> Option<u64> {
        let (mut formats, files) = self.output.named();
        formats.extend(files.iter().filter_map(|file| cli::format_of_file(file)));
        let is_shown = formats.iter().any(|format| format.needs().times);
        let is_wanted = self.timeline.asking_flag().is_some() || is_shown;
        is_wanted.then_some(self.timeline.timeline_min)
    }

    /// Returns the recorder, if the flags ask for one.
    pub(crate) fn recorder(&self) -> Option<Recorder> {
        self.timeline.recorder.recorder()
    }

    /// Returns the length of the window; `None` means until the command has ended, or until a
    /// recorder is asked to write.
    pub(crate) fn duration(&self) -> Option<Duration> {
        let is_open_ended = self.command.is_given() || self.recorder().is_some();
        let default = (!is_open_ended).then_some(DEFAULT_DURATION);
        self.duration.or(default)
    }
}
