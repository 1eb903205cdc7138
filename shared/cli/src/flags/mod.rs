//! Groups of flags that several tools share, for `#[command(flatten)]`.

mod interval;
mod output;

use std::fs;
use std::os::fd::RawFd;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use collect::{CallGraph, Detail, StackChoice};
use loader::Targets;

use crate::{Processes, values};

pub use interval::IntervalFlags;
pub use output::{Chosen, FormatFlags, FrameFlags, OutputFlags};

/// More processes than these are told by their number alone.
const MOST_LISTED: usize = 32;

/// Whom to measure; no flag means every thread of the machine.
#[derive(Args, Clone, Debug, Default)]
pub struct TargetFlags {
    #[command(flatten)]
    processes: ProcessFlags,

    /// Only these threads, by ID: 1235 or 1235,1236
    #[arg(
        short = 't',
        visible_short_alias = 'L',
        long = "tid",
        value_name = "TIDS",
        value_delimiter = ',',
        allow_negative_numbers = true,
        value_parser = values::thread_id,
        conflicts_with = "pids"
    )]
    pub tids: Vec<u32>,
}

/// Which processes to measure: those of any of the flags.
#[derive(Args, Clone, Debug, Default)]
#[group(id = "pids", multiple = true)]
pub struct ProcessFlags {
    /// Only these processes, by ID or name: 1234 or 1234,mariadbd
    #[arg(
        short = 'p',
        long = "pid",
        value_name = "PIDS",
        value_delimiter = ',',
        allow_negative_numbers = true,
        value_parser = Processes::of
    )]
    chosen: Vec<Processes>,

    /// Only processes called so, by their first thread or their executable
    #[arg(short = 'n', long = "name", value_name = "NAME", value_parser = Processes::named)]
    named: Vec<Processes>,

    /// Only processes with a name in which this regular expression is found
    #[arg(long = "name-regex", value_name = "REGEX", value_parser = Processes::matching)]
    matching: Vec<Processes>,
}

impl ProcessFlags {
    /// What each of the flags stands for.
    pub fn all(&self) -> impl Iterator<Item = &Processes> + Clone {
        [&self.chosen, &self.named, &self.matching]
            .into_iter()
            .flatten()
    }
}

impl TargetFlags {
    /// Checks that every process and thread given by its ID exists.
    ///
    /// # Errors
    /// The first that does not, and how to find the right one.
    pub fn validate(&self) -> anyhow::Result<()> {
        check_processes(&Processes::given(self.processes.all()))?;
        check_threads(&self.tids)
    }

    /// The processes, ascending.
    #[must_use]
    pub fn pids(&self) -> Vec<u32> {
        Processes::ids(self.processes.all())
    }

    /// Whom.
    #[must_use]
    pub fn targets(&self) -> Targets {
        Targets {
            pids: self.pids(),
            tids: self.tids.clone(),
        }
    }

    /// Whom, in words: `all threads`, `PID 1234,5678`, `33 processes`.
    #[must_use]
    pub fn subject(&self) -> String {
        let list = |ids: &[u32]| ids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        match (self.pids().as_slice(), self.tids.as_slice()) {
            ([], []) => "all threads".to_owned(),
            (pids, []) if pids.len() > MOST_LISTED => format!("{} processes", pids.len()),
            (pids, []) => format!("PID {}", list(pids)),
            (_, tids) => format!("TID {}", list(tids)),
        }
    }
}

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

    /// How to walk user stacks: by tables made of .eh_frame (dwarf), by frame
    /// pointers (fp), or by tables and, in code that has none, frame pointers
    #[arg(
        long, value_name = "MODE", default_value = "auto",
        value_parser = CallGraph::by_name
    )]
    pub call_graph: CallGraph,
}

impl StackFlags {
    /// Which stacks, for this output; neither flag means both sides'.
    #[must_use]
    pub fn choice(&self, output: &OutputFlags) -> StackChoice {
        let needs = output.needs();
        StackChoice {
            user: !self.kernel_stacks_only,
            kernel: !self.user_stacks_only,
            call_graph: self.call_graph,
            per_thread: needs.threads,
            per_process: needs.threads || needs.processes,
            detail: match needs.addresses {
                true => Detail::Addresses,
                false => Detail::Names,
            },
            sources: output.frames.sources(),
            of_anyone: false,
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

/// Checks that each ID is that of a process, in the caller's PID namespace.
///
/// # Errors
/// The first that is not, and how to find the right one.
pub fn check_processes(pids: &[u32]) -> anyhow::Result<()> {
    for &pid in pids {
        match process_of(pid)? {
            Some(process) if process == pid => {}
            Some(process) => {
                bail!("{pid} is a thread of process {process}; use -t {pid} or -p {process}")
            }
            None => bail!("process {pid} does not exist; `ps -e` lists the processes"),
        }
    }
    Ok(())
}

/// Checks that each ID is that of a thread, in the caller's PID namespace.
///
/// # Errors
/// The first that is not, and how to find the right one.
pub fn check_threads(tids: &[u32]) -> anyhow::Result<()> {
    for &tid in tids {
        if process_of(tid)?.is_none() {
            bail!("thread {tid} does not exist; `ps -eL` lists the threads");
        }
    }
    Ok(())
}

/// The process that a thread belongs to. `/proc` answers for threads too,
/// though it does not list them.
fn process_of(tid: u32) -> anyhow::Result<Option<u32>> {
    // Not text: the first line holds the thread's name, any bytes but NUL.
    let Ok(status) = fs::read(format!("/proc/{tid}/status")) else {
        fs::metadata("/proc/self/status").context("cannot read /proc; mount it first")?;
        return Ok(None);
    };
    let process = String::from_utf8_lossy(&status)
        .lines()
        .find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
    Ok(process)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::process::Command;
    use std::sync::mpsc;
    use std::thread;

    use clap::Parser;

    use super::*;
    use crate::parse::parse_line;

    #[derive(Debug, Parser)]
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
        let stacks = |line: &str| parse(line).unwrap().stacks.subject();
        assert_eq!(stacks(""), "user + kernel");
        assert_eq!(stacks("-U"), "user");
        assert_eq!(stacks("-K"), "kernel");
    }

    #[test]
    fn what_is_asked_for_is_what_is_chosen() {
        let targets = parse("-p 12,34").unwrap().target.targets();
        assert_eq!((&*targets.pids, &*targets.tids), (&[12, 34][..], &[][..]));
        let targets = parse("-t 12,34").unwrap().target.targets();
        assert_eq!((&*targets.pids, &*targets.tids), (&[][..], &[12, 34][..]));
        let choice = |line: &str| {
            let arguments = parse(line).unwrap();
            arguments.stacks.choice(&arguments.output)
        };
        assert!(choice("").user && choice("").kernel);
        assert!(choice("-U").user && !choice("-U").kernel);
        assert!(!choice("-K").user && choice("-K").kernel);
        assert!(!choice("").per_thread && !choice("").per_process);
        assert!(!choice("--classic").per_thread && choice("--classic").per_process);
        assert!(choice("--per-thread").per_thread && choice("--per-thread").per_process);
        assert_eq!(choice("").detail, Detail::Names);
        let scope = choice("--format scope");
        assert!(scope.per_thread && scope.per_process && scope.detail == Detail::Addresses);
        for flag in ["-s", "--addresses"] {
            assert_eq!(choice(flag).detail, Detail::Addresses);
        }
        assert_eq!(choice("").call_graph, CallGraph::Auto);
        assert_eq!(choice("--call-graph fp").call_graph, CallGraph::Fp);
        assert!(parse("--call-graph lbr").is_err());
    }

    #[test]
    fn processes_are_named_as_well() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id();
        while fs::read_to_string(format!("/proc/{pid}/comm")).unwrap() != "sleep\n" {
            thread::yield_now();
        }
        let ids = |line: &str| parse(line).map(|arguments| arguments.target.pids());
        let lines = [
            "-p sleep",
            "-p 1,sleep",
            "-n sleep -p 1",
            "--name-regex ^slee",
        ];
        let chosen = lines.map(|line| ids(line).unwrap());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(chosen.iter().all(|ids| ids.contains(&pid)), "{chosen:?}");
        assert_eq!(
            chosen.map(|ids| ids.contains(&1)),
            [false, true, true, false]
        );
        assert!(ids("-n 1").is_err() && ids("-n sleep -t 1").is_err());
    }

    #[test]
    fn targets_that_do_not_exist_are_refused() {
        let own = std::process::id();
        let validate = |line: String| parse(&line).unwrap().target.validate();
        for flag in ["-p", "-t"] {
            assert!(validate(format!("{flag} {own}")).is_ok());
            assert!(validate(format!("{flag} {own},4194304")).is_err());
        }
    }

    #[test]
    fn exclusive_flags_exclude_each_other() {
        assert!(parse("-U -K").is_err());
        assert!(parse("-p 1 -t 1").is_err());
    }

    #[test]
    fn processes_and_threads_must_exist() {
        let process = std::process::id();
        assert!(check_processes(&[process]).is_ok());
        assert!(check_threads(&[process]).is_ok());
        // Above any pid_max that this machine could be running with by default.
        let message = check_processes(&[process, 4_194_304])
            .unwrap_err()
            .to_string();
        assert_eq!(
            message,
            "process 4194304 does not exist; `ps -e` lists the processes"
        );
        let message = check_threads(&[4_194_304]).unwrap_err().to_string();
        assert_eq!(
            message,
            "thread 4194304 does not exist; `ps -eL` lists the threads"
        );
    }

    #[test]
    fn thread_given_as_process_is_pointed_out() {
        let (finish, finished) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let thread = thread::spawn(move || {
            tell.send(rustix::thread::gettid()).unwrap();
            let _ = finished.recv();
        });
        let tid = u32::try_from(told.recv().unwrap().as_raw_nonzero().get()).unwrap();
        let process = std::process::id();
        assert!(check_threads(&[tid]).is_ok());
        assert_eq!(
            check_processes(&[tid]).unwrap_err().to_string(),
            format!("{tid} is a thread of process {process}; use -t {tid} or -p {process}")
        );
        drop(finish);
        thread.join().unwrap();
    }
}
