//! Groups of flags that several tools share, for `#[command(flatten)]`.

mod cgroups;
mod command;
mod interval;
mod output;
mod target;
mod thread_name;
mod wait;
mod walk;

use std::os::fd::RawFd;
use std::time::Duration;

use clap::Args;
use collect::{Detail, StackChoice};

use crate::values;

pub use cgroups::{CgroupFlags, PinnedMapFlags};
pub use command::CommandFlags;
pub use interval::IntervalFlags;
pub use output::{Chosen, FormatFlags, FrameFlags, OutputFlags};
pub use target::{ProcessFlags, TargetFlags, check_processes, check_threads};
pub use thread_name::{ThreadNameFlags, nobody_named};
pub use wait::WaitFlags;
pub use walk::WalkFlags;

/// How long to measure.
#[derive(Args, Clone, Debug, Default)]
pub struct DurationFlags {
    /// Seconds to measure, such as 10 or 0.5 [default: until Ctrl-C]
    #[arg(
        value_name = "SECONDS",
        id = "positional_duration",
        allow_negative_numbers = true,
        value_parser = values::seconds
    )]
    positional: Option<Duration>,

    /// The same as a flag
    #[arg(
        long = "duration",
        value_name = "SECONDS",
        allow_negative_numbers = true,
        value_parser = values::seconds,
        conflicts_with = "positional_duration"
    )]
    duration: Option<Duration>,
}

impl DurationFlags {
    /// The time asked for; none means until a signal arrives.
    #[must_use]
    pub fn get(&self) -> Option<Duration> {
        self.positional.or(self.duration)
    }
}

/// Which stacks to show, and how they are walked.
#[derive(Args, Clone, Debug, Default)]
pub struct StackFlags {
    /// Only user stacks
    #[arg(short = 'U', long, conflicts_with = "kernel_stacks_only")]
    pub user_stacks_only: bool,

    /// Only kernel stacks
    #[arg(short = 'K', long)]
    pub kernel_stacks_only: bool,

    #[command(flatten)]
    walk: WalkFlags,
}

impl StackFlags {
    /// Which stacks of whom, for this output; neither flag means both sides'.
    #[must_use]
    pub fn choice(&self, output: &OutputFlags, target: &TargetFlags) -> StackChoice {
        let needs = output.needs();
        StackChoice {
            user: !self.kernel_stacks_only,
            kernel: !self.user_stacks_only,
            walking: self.walk.walking(),
            per_thread: needs.threads,
            per_process: needs.threads || needs.processes,
            detail: match needs.addresses {
                true => Detail::Addresses,
                false => Detail::Names,
            },
            sources: output.frames.sources(),
            // Without the kernel's part of a stack there is no reason that they belong to.
            objects: !self.user_stacks_only && needs.reasons,
            of_anyone: false,
            thread_names: target.thread_name().cloned(),
        }
    }

    /// Which stacks, in words.
    #[must_use]
    pub fn subject(&self) -> &'static str {
        match (self.user_stacks_only, self.kernel_stacks_only) {
            (true, _) => "user",
            (_, true) => "kernel",
            _ => "user + kernel",
        }
    }
}

/// Whether another process says when to start and stop (see [`Window`](crate::Window)).
#[derive(Args, Clone, Debug, Default)]
pub struct ControlFlags {
    /// Socket over which the parent says when to start and stop
    #[arg(long, value_name = "FD", hide = true)]
    pub control_fd: Option<RawFd>,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use clap::Parser;
    use collect::{CallGraph, Languages, Walking};

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
    fn what_is_asked_for_is_what_is_chosen() {
        let targets = parse("-p 12,34").unwrap().target.targets(None);
        assert_eq!((&*targets.pids, &*targets.tids), (&[12, 34][..], &[][..]));
        let targets = parse("-t 12,34").unwrap().target.targets(None);
        assert_eq!((&*targets.pids, &*targets.tids), (&[][..], &[12, 34][..]));
        let choice = |line: &str| {
            let arguments = parse(line).unwrap();
            arguments
                .stacks
                .choice(&arguments.output, &arguments.target)
        };
        assert!(choice("").user && choice("").kernel);
        assert!(choice("-U").user && !choice("-U").kernel);
        assert!(!choice("-K").user && choice("-K").kernel);
        assert!(!choice("").per_thread && !choice("").per_process);
        assert!(!choice("--classic").per_thread && choice("--classic").per_process);
        assert!(choice("--per-thread").per_thread && choice("--per-thread").per_process);
        assert!(!choice("--per-process").per_thread && choice("--per-process").per_process);
        assert!(choice("").thread_names.is_none());
        assert!(choice("--thread-name a").thread_names.is_some());
        assert_eq!(choice("").detail, Detail::Names);
        assert!(!choice("").objects && !choice("-K").objects);
        assert!(choice("--reasons").objects && choice("--reasons -K").objects);
        assert!(!choice("--reasons -U").objects);
        let scope = choice("--format scope");
        assert!(scope.per_thread && scope.per_process && scope.detail == Detail::Addresses);
        for flag in ["-s", "--addresses"] {
            assert_eq!(choice(flag).detail, Detail::Addresses);
        }
        let walking = |line: &str| choice(line).walking;
        assert_eq!(walking("").call_graph, CallGraph::Auto);
        assert_eq!(walking("--call-graph fp").call_graph, CallGraph::Fp);
        assert!(parse("--call-graph lbr").is_err());
        assert_eq!(walking("").max_stack, Walking::MOST_FRAMES);
        assert_eq!(walking("--max-stack 30").max_stack, 30);
        for wrong in ["0", "1025", "-1", "all"] {
            assert!(parse(&format!("--max-stack {wrong}")).is_err(), "{wrong}");
        }
        assert_eq!(walking("").languages, Languages::Known);
        assert_eq!(walking("--language python").languages, Languages::Python);
        assert_eq!(walking("--language none").languages, Languages::None);
        assert!(parse("--language cobol").is_err());
        // What a child is told it understands.
        let told = |line: &str| parse(line).unwrap().stacks.walk.arguments().join(" ");
        let all = "--call-graph=dwarf --max-stack=30 --language=python --native-python";
        assert_eq!(told(all), all);
        assert_eq!(
            told(""),
            "--call-graph=auto --max-stack=1024 --language=all"
        );
        assert!(walking("--native-python").native_python && !walking("").native_python);
    }

    #[test]
    fn a_command_is_what_comes_last() {
        let target = parse("-- true -p 1").unwrap().target;
        assert_eq!(target.command().subject().as_deref(), Some("`true -p 1`"));
        assert!(target.pids().is_empty());
        assert!(target.command().start().unwrap().is_some());
        assert!(!parse("-p 1").unwrap().target.command().is_given());
    }

    #[test]
    fn exclusive_flags_exclude_each_other() {
        assert!(parse("-U -K").is_err());
        assert!(parse("-p 1 -t 1").is_err());
    }
}
