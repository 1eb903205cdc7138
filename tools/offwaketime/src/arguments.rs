//! The command line of offwaketime.
#![allow(rustdoc::broken_intra_doc_links, reason = "the text of --help")]

use std::path::PathBuf;

use bpf::types::MOST_HOPS;
use clap::Parser;
use cli::values;
use loader::Targets;

/// Shows why threads block and who ends it: the blocked time by the sleeper's
/// stack and its waker's.
///
/// Traces until Ctrl-C or for the given seconds, then prints one line for each
/// pair in folded form: the sleeper's name, user frames from the root, kernel
/// frames; `--`; the waker's frames from the leaf, its name; and the
/// microseconds. Read from the end it tells the story.
///
/// The waker is [timer], [irq] or [softirq] where an interrupt ended the wait,
/// and [still blocked] where nobody did before the end. A wait that began
/// before is counted from the start.
#[derive(Parser, Debug)]
#[command(
    name = "offwaketime",
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

    /// Only waits that threads of these processes ended, by ID
    #[arg(
        long = "waker-pid", value_name = "PIDS", value_delimiter = ',',
        allow_negative_numbers = true, value_parser = values::process_id
    )]
    pub(crate) waker_pids: Vec<u32>,

    /// Only waits that these threads ended, by ID
    #[arg(
        long = "waker-tid", value_name = "TIDS", value_delimiter = ',',
        allow_negative_numbers = true, value_parser = values::thread_id
    )]
    pub(crate) waker_tids: Vec<u32>,

    /// Follow the waker's own last wait: who had woken that one, up to N wakers
    /// in all. Measures every thread of the machine to know
    #[arg(
        long, value_name = "N", default_value = "1",
        allow_negative_numbers = true, value_parser = hops
    )]
    pub(crate) chain: u32,

    #[command(flatten)]
    pub(crate) stacks: cli::StackFlags,

    /// Show the waits for a CPU after the wake-ups, too: leaf frames of sleepers
    /// end in _[o] for blocked time, in _[r] for these
    #[arg(long)]
    pub(crate) states: bool,

    /// Print nanoseconds instead of microseconds
    #[arg(long)]
    pub(crate) nanoseconds: bool,

    /// Also write a flame graph to FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) output: cli::OutputFlags,

    #[command(flatten)]
    pub(crate) duration: cli::DurationFlags,

    #[command(flatten)]
    pub(crate) control: cli::ControlFlags,
}

const EXAMPLES: &str = "\
The time is the blocked time, up to the wake-up; -m and -M are bounds on it.

Examples:
  offwaketime                     trace all threads until Ctrl-C
  offwaketime -p 1234 5           one process for 5 seconds
  offwaketime -m 1000             only waits of 1 ms and more
  offwaketime -p 1234 --svg wakeups.svg 10 > wakeups.folded
  offwaketime -t 1235 --chain 3   who woke it, who had woken that one, and so on
  offwaketime --waker-pid 5678    whom process 5678 wakes
  offwaketime -o w.svg -- make    a command and all that it starts, to its end
  offwaketime -p 1234 --thread-name '^io-'
                                  its threads that are called io-…
  offwaketime -k --state 2        kernel threads in uninterruptible waits";

/// `--chain`: 1 to [`MOST_HOPS`].
fn hops(text: &str) -> Result<u32, String> {
    values::positive(text)
        .ok()
        .filter(|&hops| hops <= MOST_HOPS as u64)
        .and_then(|hops| u32::try_from(hops).ok())
        .ok_or_else(|| format!("give a number of wakers from 1 to {MOST_HOPS}"))
}

impl Arguments {
    /// Whose wake-ups count.
    pub(crate) fn wakers(&self) -> Targets {
        Targets::new(self.waker_pids.clone(), self.waker_tids.clone())
    }

    /// Whether it is asked who had woken the waker.
    pub(crate) fn follows_chain(&self) -> bool {
        self.chain > 1
    }
}
