//! Flags of the tools that measure off-CPU intervals.

use clap::{Args, ValueEnum};
use collect::{OffCpuFilter, ThreadKind};
use profile::{Lengths, Profile, Reason};

use super::{TargetFlags, TimelineFlags, values};
use crate::usage;

/// Flags that choose threads by kind, and intervals by length, state and reason.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Waits")]
pub struct IntervalFlags {
    /// Only user threads
    #[arg(short = 'u', long, help_heading = super::TARGETS, conflicts_with_all = ["kernel_threads_only", "pids", "tids", "command"])]
    pub user_threads_only: bool,

    /// Only kernel threads
    #[arg(short = 'k', long, help_heading = super::TARGETS, conflicts_with_all = ["pids", "tids", "command"])]
    pub kernel_threads_only: bool,

    /// Minimum length of an interval, in microseconds
    #[arg(
        short = 'm', long, value_name = "MIN_US", default_value = "1",
        allow_negative_numbers = true, value_parser = values::microseconds
    )]
    pub min_block_time: u64,

    /// Maximum length of an interval, in microseconds [default: no limit]
    #[arg(
        short = 'M', long, value_name = "MAX_US",
        allow_negative_numbers = true, value_parser = values::microseconds
    )]
    pub max_block_time: Option<u64>,

    /// Only intervals that began in these task states, a mask of TASK_ bits
    ///
    /// The bits are the kernel's: 1 is interruptible, 2 is uninterruptible. MASK 0 means runnable.
    #[arg(
        long, value_name = "MASK", hide_short_help = true, allow_negative_numbers = true,
        value_parser = values::task_states
    )]
    pub state: Option<u32>,

    /// Only time blocked for these reasons, such as lock,disk
    ///
    /// The reasons are lock, kernel-lock, condition, child, events, network, local-ipc, disk-read,
    /// disk-write (disk means both), page-fault, memory, throttle, sleep, stopped, device, kernel
    /// and unknown.
    #[arg(
        long = "reason", value_name = "REASONS", value_delimiter = ',',
        value_parser = reasons, conflicts_with = "user_stacks_only"
    )]
    only_reasons: Vec<Reasons>,

    /// Show or hide idle time, or show only it
    ///
    /// A thread is idle while it waits for new work, or does nothing at all.
    #[arg(
        long, value_name = "MODE", value_enum, default_value_t = IdleTime::Show,
        conflicts_with = "user_stacks_only"
    )]
    pub idle: IdleTime,
}

/// Treatment of idle time, in which a thread waits for new work or does nothing at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum IdleTime {
    /// Show idle time beside all other time
    Show,
    /// Leave out idle time
    Hide,
    /// Show idle time only
    Only,
}

/// The reasons that a word names: `disk` names two.
#[derive(Clone, Debug)]
struct Reasons(Vec<Reason>);

/// Parses the name of a reason.
fn reasons(word: &str) -> Result<Reasons, String> {
    let reasons = Reason::named(word);
    if reasons.is_empty() {
        let all = Reason::ALL.map(|reason| reason.name().replace(' ', "-"));
        return Err(format!("the reasons are {}", all.join(", ")));
    }
    Ok(Reasons(reasons))
}

impl IntervalFlags {
    /// Returns the chosen reasons; none if all time counts.
    #[must_use]
    pub fn reasons(&self) -> Vec<Reason> {
        let words = self.only_reasons.iter();
        words.flat_map(|Reasons(meant)| meant).copied().collect()
    }

    /// Returns whether the flags need the resource and the idleness of each wait.
    #[must_use]
    pub fn need_objects(&self) -> bool {
        self.exclude_samples()
    }

    /// Returns whether the flags exclude samples of a profile.
    #[must_use]
    pub fn exclude_samples(&self) -> bool {
        !self.only_reasons.is_empty() || self.idle != IdleTime::Show
    }

    /// Removes the samples that the flags exclude from a profile.
    pub fn retain(&self, profile: &mut Profile) {
        let reasons = self.reasons();
        if !reasons.is_empty() {
            profile.retain_reasons(&reasons);
        }
        match self.idle {
            IdleTime::Show => {}
            IdleTime::Hide => profile.retain_idle(false),
            IdleTime::Only => profile.retain_idle(true),
        }
    }

    /// Checks the bounds against each other, and against the triggers of a recorder.
    ///
    /// # Errors
    /// The minimum is not below the maximum, or a trigger is below the minimum.
    pub fn validate(&self, timeline: &TimelineFlags) -> anyhow::Result<()> {
        let least_us = timeline.min_interval_us(self.min_block_time);
        timeline.recorder.check(least_us)?;
        match self.max_block_time {
            Some(max) if self.min_block_time >= max => Err(usage(format!(
                "-m {} is not below -M {max}: give -m a smaller or -M a larger number of microseconds",
                self.min_block_time
            ))),
            _ => Ok(()),
        }
    }

    /// Returns the filter that the BPF programs apply to intervals. A recorder has no stacks of
    /// intervals that are too short for its timeline.
    #[must_use]
    pub fn filter(&self, timeline: &TimelineFlags) -> OffCpuFilter {
        let nanoseconds = |microseconds: u64| microseconds.saturating_mul(1000);
        OffCpuFilter {
            kind: ThreadKind::new(self.user_threads_only, self.kernel_threads_only),
            min_ns: nanoseconds(timeline.min_interval_us(self.min_block_time)),
            max_ns: self.max_block_time.map_or(u64::MAX, nanoseconds),
            states: self.state,
        }
    }

    /// Returns the bounds on the intervals' lengths, and whether shorter intervals are sampled.
    #[must_use]
    pub fn lengths(&self, timeline: &TimelineFlags, short_are_sampled: bool) -> Lengths {
        let filter = self.filter(timeline);
        Lengths {
            least: filter.min_ns,
            most: filter.max_ns,
            short_are_sampled,
        }
    }

    /// Returns a description of the targets such as `all user threads` or `PID 1234,5678`.
    #[must_use]
    pub fn subject(&self, target: &TargetFlags) -> String {
        let kind = match (self.user_threads_only, self.kernel_threads_only) {
            (true, _) => "user threads",
            (_, true) => "kernel threads",
            _ => return target.subject(),
        };
        if target.targets(None).is_everything() {
            target.thread_name.subject(format!("all {kind}"))
        } else {
            format!("{kind} of {}", target.subject())
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::flags::StackFlags;
    use crate::parse::parse_line;

    #[derive(Debug, Parser)]
    struct Arguments {
        #[command(flatten)]
        target: TargetFlags,
        #[command(flatten)]
        intervals: IntervalFlags,
        #[command(flatten)]
        stacks: StackFlags,
    }

    fn parse(line: &str) -> anyhow::Result<IntervalFlags> {
        parse_line(line).map(|arguments: Arguments| arguments.intervals)
    }

    fn subject(line: &str) -> String {
        let arguments: Arguments = parse_line(line).unwrap();
        arguments.intervals.subject(&arguments.target)
    }

    #[test]
    fn whose_intervals_count_is_told_in_words() {
        let kind = |line| parse(line).unwrap().filter(&TimelineFlags::default()).kind;
        for (line, words, chosen) in [
            ("", "all threads", ThreadKind::All),
            ("-t 7", "TID 7", ThreadKind::All),
            ("-u", "all user threads", ThreadKind::User),
            ("-k", "all kernel threads", ThreadKind::Kernel),
            (
                "-u --cgroup /",
                "user threads of cgroup /",
                ThreadKind::User,
            ),
            (
                "-k --thread-name ^kworker",
                "all kernel threads, threads named /^kworker/",
                ThreadKind::Kernel,
            ),
        ] {
            assert_eq!((&*subject(line), kind(line)), (words, chosen));
        }
        let states = |line| {
            parse(line)
                .unwrap()
                .filter(&TimelineFlags::default())
                .states
        };
        assert_eq!([states(""), states("--state 2")], [None, Some(2)]);
    }

    #[test]
    fn reasons_are_named_by_words() {
        let meant = |line| parse(line).map(|flags| flags.reasons());
        assert_eq!(meant("").unwrap(), []);
        assert_eq!(
            meant("--reason lock,disk").unwrap(),
            [Reason::Lock, Reason::DiskRead, Reason::DiskWrite]
        );
        let error = meant("--reason luck").unwrap_err().to_string();
        assert!(
            error.contains("the reasons are lock, kernel-lock, "),
            "{error}"
        );
    }

    #[test]
    fn kinds_of_threads_are_chosen_where_none_are_named() {
        for line in ["-u -k", "-u -p 1", "-k -t 1"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
