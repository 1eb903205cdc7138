//! The command line of offwaketime.
#![allow(rustdoc::broken_intra_doc_links, reason = "the text of --help")]

use std::path::PathBuf;

use bpf::types::MAX_HOPS;
use clap::Parser;
use cli::values;
use loader::Targets;

/// Show why threads block and what wakes them: blocked time by stack and waker.
///
/// offwaketime traces until Ctrl-C or for the given seconds. Then it prints one line per pair of
/// stacks in folded form: the sleeper's name, user frames from the root and kernel frames; `--`;
/// the waker's frames from the leaf and its name; and the time in microseconds.
///
/// The waker is [timer], [irq] or [softirq] if an interrupt ended the wait, and [still blocked] if
/// the wait did not end within the window. A wait that began before the window counts from the
/// window's start.
#[derive(Parser, Debug)]
#[command(
    name = "offwaketime",
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

    /// Only waits that these processes ended, by ID
    #[arg(
        long = "waker-pid", value_name = "PIDS", help_heading = WAKERS, value_delimiter = ',',
        allow_negative_numbers = true, value_parser = values::process_id
    )]
    pub(crate) waker_pids: Vec<u32>,

    /// Only waits that these threads ended, by ID
    #[arg(
        long = "waker-tid", value_name = "TIDS", help_heading = WAKERS, value_delimiter = ',',
        allow_negative_numbers = true, value_parser = values::thread_id
    )]
    pub(crate) waker_tids: Vec<u32>,

    /// Follow the wakers of wakers, up to N wakers per wait
    ///
    /// Above 1 the tool measures every thread of the machine, as any may be a waker.
    #[arg(
        long, value_name = "N", help_heading = WAKERS, default_value = "1",
        allow_negative_numbers = true, value_parser = hops
    )]
    pub(crate) chain: u32,

    #[command(flatten)]
    pub(crate) stacks: cli::StackFlags,

    #[command(flatten)]
    pub(crate) output: cli::OutputFlags,

    /// Also show waits for a CPU after wake-ups (_[r]); blocked time ends in _[o]
    #[arg(long, help_heading = "Output")]
    pub(crate) states: bool,

    /// Print nanoseconds instead of microseconds
    #[arg(long, help_heading = "Output")]
    pub(crate) nanoseconds: bool,

    /// Also write a flame graph to FILE
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) svg: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) duration: cli::DurationFlags,

    #[command(flatten)]
    pub(crate) control: cli::ControlFlags,

    #[command(flatten)]
    help: cli::HelpFlag,

    #[command(flatten)]
    version: cli::VersionFlag,
}

/// Heading of the flags that choose wakers.
const WAKERS: &str = "Wakers";

const EXAMPLES: &str = "\
Times are blocked time, up to the wake-up. -m and -M bound this time.

Examples:
  offwaketime                     trace all threads until Ctrl-C
  offwaketime -p 1234 5           one process for 5 seconds
  offwaketime -m 1000             only waits of 1 ms and more
  offwaketime -p 1234 --svg wakeups.svg 10 > wakeups.folded
  offwaketime -t 1235 --chain 3   its wakers, their wakers, and theirs
  offwaketime --waker-pid 5678    threads that process 5678 wakes
  offwaketime -o w.svg -- make    a command and its descendants, to its end
  offwaketime -p 1234 --thread-name '^io-'
                                  its threads with names io-…
  offwaketime -k --state 2        kernel threads in uninterruptible waits";

/// Parses the value of `--chain`, 1 to [`MAX_HOPS`].
fn hops(text: &str) -> Result<u32, String> {
    values::positive(text)
        .ok()
        .filter(|&hops| hops <= MAX_HOPS as u64)
        .and_then(|hops| u32::try_from(hops).ok())
        .ok_or_else(|| format!("give a number of wakers from 1 to {MAX_HOPS}"))
}

impl Arguments {
    /// Returns the wakers whose wake-ups count.
    pub(crate) fn wakers(&self) -> Targets {
        Targets::new(self.waker_pids.clone(), self.waker_tids.clone())
    }

    /// Returns whether the wakers of wakers are recorded.
    pub(crate) fn follows_chain(&self) -> bool {
        self.chain > 1
    }
}
