//! Groups of flags that several tools share, for `#[command(flatten)]`. Each group sets its heading
//! in `--help`.

mod cgroups;
mod command;
mod debuginfod;
mod interval;
mod output;
mod recorder;
mod request;
mod target;
mod thread_name;
mod timeline;
pub mod values;
mod wait;
mod walk;

use std::os::fd::RawFd;
use std::time::Duration;

use clap::builder::Resettable;
use clap::{ArgAction, Args};
use collect::{Detail, StackChoice};

use crate::StartAt;

pub use cgroups::{CgroupFlags, PinnedMapFlags};
pub use command::CommandFlags;
pub use debuginfod::DebuginfodFlags;
pub use interval::IntervalFlags;
pub use output::{Chosen, FormatFlags, FrameFlags, OutputFlags};
pub use recorder::RecorderFlags;
pub(crate) use recorder::trigger_text;
pub use request::{Measured, Request, RequestedTargets};
pub use target::{ProcessFlags, TargetFlags, check_processes, check_threads, check_width};
pub use thread_name::{ThreadNameFlags, nobody_named};
pub use timeline::TimelineFlags;
pub use wait::WaitFlags;
pub use walk::WalkFlags;

/// Heading of the flags that choose targets.
const TARGETS: &str = "Targets";
/// Heading of the flags that choose and unwind stacks.
const STACKS: &str = "Stacks";

/// Length of the window, as an argument or as a flag.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Time")]
pub struct DurationFlags {
    /// Seconds to measure, such as 10 or 0.5 [default: until Ctrl-C]
    #[arg(
        value_name = "SECONDS",
        id = "positional_duration",
        help_heading = Resettable::Reset,
        allow_negative_numbers = true,
        value_parser = values::seconds
    )]
    positional: Option<Duration>,

    /// Seconds to measure; the same as the argument SECONDS
    #[arg(
        long = "duration",
        hide_short_help = true,
        value_name = "SECONDS",
        allow_negative_numbers = true,
        value_parser = values::seconds,
        conflicts_with = "positional_duration"
    )]
    duration: Option<Duration>,

    /// Start the window at the next multiple of PERIOD in wall-clock time, such as /10s
    ///
    /// Captures of several hosts then cover the same time.
    #[arg(long, value_name = "PERIOD", hide_short_help = true, value_parser = StartAt::parse)]
    pub start_at: Option<StartAt>,
}

impl DurationFlags {
    /// Returns the length of the window; `None` means until a signal arrives.
    #[must_use]
    pub fn get(&self) -> Option<Duration> {
        self.positional.or(self.duration)
    }
}

/// Flags that choose stacks, and how they are unwound.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = STACKS)]
pub struct StackFlags {
    /// Only user stacks
    #[arg(short = 'U', long, conflicts_with = "kernel_stacks_only")]
    pub user_stacks_only: bool,

    /// Only kernel stacks
    #[arg(short = 'K', long)]
    pub kernel_stacks_only: bool,

    #[command(flatten)]
    walk: WalkFlags,

    #[command(flatten)]
    debuginfod: DebuginfodFlags,
}

impl StackFlags {
    /// Returns which stacks to capture for this output and these targets. Without `-U` and `-K`
    /// both user and kernel stacks are captured.
    #[must_use]
    pub fn choice(&self, output: &OutputFlags, target: &TargetFlags) -> StackChoice {
        let needs = output.needs();
        StackChoice {
            user: !self.kernel_stacks_only,
            kernel: !self.user_stacks_only,
            walking: self.walk.walking(),
            per_thread: needs.threads,
            per_process: needs.threads || needs.processes,
            detail: if needs.addresses {
                Detail::Addresses
            } else {
                Detail::Names
            },
            sources: output.frames.sources(),
            // Without the kernel stack a wait has no reason, and so no resource.
            objects: !self.user_stacks_only && needs.reasons,
            thread_names: target.thread_name().cloned(),
            timeline_least_ns: needs.times.then(|| output.timeline.least_ns()),
            recorder: output.timeline.recorder.recorder(),
        }
    }

    /// Returns the flag for debug files from servers.
    #[must_use]
    pub fn debuginfod(&self) -> &DebuginfodFlags {
        &self.debuginfod
    }

    /// Returns the kinds of stacks: `user`, `kernel`, or `user + kernel`.
    #[must_use]
    pub fn subject(&self) -> &'static str {
        match (self.user_stacks_only, self.kernel_stacks_only) {
            (true, _) => "user",
            (_, true) => "kernel",
            _ => "user + kernel",
        }
    }
}

/// Flag for a parent that controls the window (see [`Window`](crate::Window)).
#[derive(Args, Clone, Debug, Default)]
pub struct ControlFlags {
    /// Socket over which the parent says when to start and stop
    #[arg(long, value_name = "FD", hide = true)]
    pub control_fd: Option<RawFd>,
}

/// Flag `--help`, listed behind all other flags. clap's own flag would stand before them.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Other", disable_help_flag = true)]
pub struct HelpFlag {
    /// Print help: -h a summary, --help all flags in detail
    #[arg(short, long, action = ArgAction::Help)]
    help: Option<bool>,
}

/// Flag `--version`, listed behind all other flags. clap's own flag would stand before them.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Other", disable_version_flag = true)]
pub struct VersionFlag {
    /// Print the version
    #[arg(short = 'V', long, action = ArgAction::Version)]
    version: Option<bool>,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::parse::parse_line;

    #[derive(Debug, Parser)]
    #[command(mut_arg("command", |arg| arg.index(2)))]
    struct Arguments {
        #[command(flatten)]
        target: TargetFlags,
        #[command(flatten)]
        stacks: StackFlags,
        #[command(flatten)]
        output: OutputFlags,
        #[command(flatten)]
        duration: DurationFlags,
        #[command(flatten)]
        control: ControlFlags,
    }

    fn parse(line: &str) -> anyhow::Result<Arguments> {
        parse_line(line)
    }

    #[test]
    fn lists_are_comma_separated_and_repeatable() {
        let arguments = parse("-p 1,22 --pid 333").unwrap();
        assert_eq!(arguments.target.pids(), [1, 22, 333]);
        assert_eq!(parse("-L 7,8").unwrap().target.tids, [7, 8]);
        assert_eq!(parse("-t 7 --tid 8").unwrap().target.tids, [7, 8]);
    }

    #[test]
    fn duration_is_positional_or_a_flag_but_not_both() {
        assert_eq!(
            parse("0.5").unwrap().duration.get(),
            Some(Duration::from_millis(500))
        );
        assert_eq!(
            parse("--duration 3").unwrap().duration.get(),
            Some(Duration::from_secs(3))
        );
        assert_eq!(
            parse("-p 1 3").unwrap().duration.get(),
            Some(Duration::from_secs(3))
        );
        assert_eq!(parse("-p 1").unwrap().duration.get(), None);
        assert!(parse("--duration 3 4").is_err());
        let message = parse("-5").unwrap_err().to_string();
        assert!(message.contains("give seconds above 0"), "{message}");
    }

    #[test]
    fn bccs_short_flags_are_understood() {
        let arguments = parse("-adf -U -v -o out --per-thread --control-fd 3").unwrap();
        assert!(arguments.output.annotate && arguments.output.delimited);
        assert!(arguments.output.per_thread && arguments.output.verbose);
        assert!(arguments.stacks.user_stacks_only && !arguments.stacks.kernel_stacks_only);
        assert_eq!(arguments.control.control_fd, Some(3));
    }

    #[test]
    fn what_is_measured_is_told_in_words() {
        let subject = |line: &str| parse(line).unwrap().target.subject();
        assert_eq!(subject(""), "all threads");
        assert_eq!(subject("-p 12,34"), "PID 12,34");
        assert_eq!(subject("-t 12,34"), "TID 12,34");
        assert_eq!(
            subject("-p 12 --thread-name ^io"),
            "PID 12, threads named /^io/"
        );
        let stacks = |line: &str| parse(line).unwrap().stacks.subject();
        assert_eq!(stacks(""), "user + kernel");
        assert_eq!(stacks("-U"), "user");
        assert_eq!(stacks("-K"), "kernel");
    }

    #[test]
    fn exclusive_flags_exclude_each_other() {
        assert!(parse("-U -K").is_err());
        assert!(parse("-p 1 -t 1").is_err());
    }
}
