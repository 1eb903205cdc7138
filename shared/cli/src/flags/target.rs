//! Flags that choose the targets.

use std::fs;

use anyhow::{Context, bail};
use clap::Args;
use loader::Targets;
use regex::Regex;

use super::{CgroupFlags, CommandFlags, PinnedMapFlags, ThreadNameFlags, WaitFlags, values};
use crate::{HeldCommand, Processes};

/// Maximum processes that a description lists. A description of more processes gives their number.
const MAX_LISTED: usize = 32;

/// Flags that choose the targets. Without any, every thread of the machine is a target.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = super::TARGETS)]
pub struct TargetFlags {
    #[command(flatten)]
    pub(super) processes: ProcessFlags,

    #[command(flatten)]
    pub(super) command: CommandFlags,

    /// Only these threads, by ID: 1235 or 1235,1236
    #[arg(
        short = 't',
        visible_short_alias = 'L',
        long = "tid",
        value_name = "TIDS",
        value_delimiter = ',',
        allow_negative_numbers = true,
        value_parser = values::thread_id,
        conflicts_with_all = ["pids", "cgroups", "wait", "command", "no_children", "user"]
    )]
    pub tids: Vec<u32>,

    #[command(flatten)]
    pub(super) cgroups: CgroupFlags,

    #[command(flatten)]
    pub(super) wait: WaitFlags,

    #[command(flatten)]
    pub(super) maps: PinnedMapFlags,

    #[command(flatten)]
    pub(crate) thread_name: ThreadNameFlags,
}

/// Flags that choose processes. The targets are the union of all flags.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = super::TARGETS)]
#[group(id = "pids", multiple = true)]
pub struct ProcessFlags {
    /// Only these processes, by ID or name: 1234 or 1234,mariadbd
    #[arg(
        short = 'p',
        long = "pid",
        value_name = "PIDS",
        value_delimiter = ',',
        allow_negative_numbers = true,
        value_parser = Processes::parse
    )]
    chosen: Vec<Processes>,

    /// Only processes with this name: of the first thread or the executable
    ///
    /// Any user can give a process any name.
    #[arg(short = 'n', long = "name", value_name = "NAME", value_parser = Processes::named)]
    named: Vec<Processes>,

    /// Only processes with a name that matches this regular expression
    #[arg(long = "name-regex", value_name = "REGEX", value_parser = Processes::matching)]
    matching: Vec<Processes>,
}

impl ProcessFlags {
    /// Returns the processes that each value of the flags names.
    pub fn all(&self) -> impl Iterator<Item = &Processes> + Clone {
        [&self.chosen, &self.named, &self.matching]
            .into_iter()
            .flatten()
    }
}

impl TargetFlags {
    /// Checks that every process, thread and cgroup of the flags exists, or that `--wait` can wait
    /// for it.
    ///
    /// # Errors
    /// A target does not exist. The error names the first such target and a way to find the right
    /// one.
    pub fn validate(&self) -> anyhow::Result<()> {
        self.wait.check(&self.processes, &self.cgroups)?;
        check_processes(&Processes::given(self.processes.all()))?;
        check_threads(&self.tids)
    }

    /// Checks that the user stacks of each process given by its ID can be unwound.
    ///
    /// # Errors
    /// A process runs 32-bit code. The error names the first such process.
    pub fn validate_width(&self) -> anyhow::Result<()> {
        check_width(&Processes::given(self.processes.all()))
    }

    /// Returns the IDs of the chosen processes, ascending.
    #[must_use]
    pub fn pids(&self) -> Vec<u32> {
        Processes::ids(self.processes.all())
    }

    /// Returns the flags for the command to run.
    #[must_use]
    pub fn command(&self) -> &CommandFlags {
        &self.command
    }

    /// Returns the targets, with the process of `command` if it is started.
    #[must_use]
    pub fn targets(&self, command: Option<&HeldCommand>) -> Targets {
        let mut pids = self.pids();
        pids.extend(command.map(HeldCommand::pid));
        let mut targets = Targets::new(pids, self.tids.clone());
        // A command starts after any search by name, and conflicts with names.
        if let (None, Some(found)) = (command, Processes::found_ns(self.processes.all())) {
            targets.named_ns = found;
        }
        targets.awaited = self.wait.names(&self.processes);
        targets.cgroups = self.cgroups.cgroups();
        targets.awaited_cgroups = self.wait.cgroups(&self.cgroups);
        targets.await_members = self.wait.awaits_members(&self.cgroups);
        targets.cgroup_map = self.maps.cgroups();
        targets.mount_namespace_map = self.maps.mount_namespaces();
        targets.children = self.command.follows_children() && !targets.is_everything();
        targets
    }

    /// Returns a description of the targets, such as `all threads`, `PID 1234,5678 and children`,
    /// `33 processes` or `cgroup /a.slice`.
    #[must_use]
    pub fn subject(&self) -> String {
        let named = self.command.subject().or_else(|| self.cgroups.subject());
        let named = self.maps.subject(named.unwrap_or_else(|| self.named()));
        let is_everything = self.targets(None).is_everything() && !self.command.is_given();
        let whom = if self.command.follows_children() && !is_everything {
            format!("{named} and children")
        } else {
            named
        };
        self.thread_name.subject(whom)
    }

    /// Returns the expression that threads' names must match, if one is given.
    #[must_use]
    pub fn thread_name(&self) -> Option<&Regex> {
        self.thread_name.expression()
    }

    fn named(&self) -> String {
        let list = |ids: &[u32]| ids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let awaited = self.wait.names(&self.processes);
        match (self.pids().as_slice(), self.tids.as_slice()) {
            ([], []) if !awaited.is_empty() => format!("`{}`", awaited.join("`, `")),
            ([], []) => "all threads".to_owned(),
            (pids, []) if pids.len() > MAX_LISTED => format!("{} processes", pids.len()),
            (pids, []) => format!("PID {}", list(pids)),
            (_, tids) => format!("TID {}", list(tids)),
        }
    }
}

/// Checks that each ID belongs to a process in the caller's PID namespace.
///
/// # Errors
/// The check fails. The error names the first wrong ID and a way to find the right one.
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

/// Checks that no process runs 32-bit code, whose stacks cannot be unwound.
///
/// # Errors
/// A process runs 32-bit code. The error names the first such process and a way to measure it.
pub fn check_width(pids: &[u32]) -> anyhow::Result<()> {
    match pids.iter().find(|pid| process::runs_32_bit_code(**pid)) {
        Some(pid) => bail!(
            "cannot unwind the user stacks of process {pid}: it is a 32-bit program; \
             `offcputime -K` shows its kernel stacks"
        ),
        None => Ok(()),
    }
}

/// Checks that each ID belongs to a thread in the caller's PID namespace.
///
/// # Errors
/// The check fails. The error names the first wrong ID and a way to find the right one.
pub fn check_threads(tids: &[u32]) -> anyhow::Result<()> {
    for &tid in tids {
        if process_of(tid)?.is_none() {
            bail!("thread {tid} does not exist; `ps -eL` lists the threads");
        }
    }
    Ok(())
}

/// Returns the process that a thread belongs to. `/proc` has a folder for each thread, though it
/// only lists processes.
fn process_of(tid: u32) -> anyhow::Result<Option<u32>> {
    // The file may not be UTF-8: the first line has the thread's name, any bytes but NUL.
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
    use std::sync::mpsc;
    use std::thread;

    use clap::Parser;

    use super::*;
    use crate::parse::parse_line;

    #[derive(Debug, Parser)]
    struct Arguments {
        #[command(flatten)]
        target: TargetFlags,
    }

    fn parse(line: &str) -> anyhow::Result<Arguments> {
        parse_line(line)
    }

    #[test]
    fn a_name_that_is_nobodys_can_be_waited_for() {
        let check = |line: &str| parse(line).unwrap().target.validate();
        let told = check("-n no-such-name-1").unwrap_err().to_string();
        assert!(
            told.starts_with("`no-such-name-1`: no process has this name"),
            "{told}"
        );
        assert!(check("-n no-such-name-1 --wait").is_ok());
        let of_length = |length: usize| format!("-p {} --wait", "x".repeat(length));
        assert!(check(&of_length(63)).is_ok());
        assert!(check(&of_length(64)).is_err());
        assert!(parse("--name-regex . --wait").is_err());
        let target = parse("-n no-such-name-1 -p 1 --wait").unwrap().target;
        assert_eq!(target.targets(None).awaited, ["no-such-name-1"]);
        assert!(!target.targets(None).are_awaited());
        let target = parse("-n no-such-name-1 --wait").unwrap().target;
        assert!(target.targets(None).are_awaited());
        assert_eq!(target.subject(), "`no-such-name-1`");
    }

    #[test]
    fn processes_and_threads_must_exist() {
        let process = std::process::id();
        assert!(check_processes(&[process]).is_ok());
        assert!(check_threads(&[process]).is_ok());
        // The ID is above any default pid_max.
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

    #[test]
    fn children_are_those_of_whoever_is_measured() {
        let targets = |line: &str| parse(line).unwrap().target.targets(None);
        let subject = |line: &str| parse(line).unwrap().target.subject();
        assert!(targets("-p 1 --children").children && !targets("-p 1").children);
        let follows = |line: &str| parse(line).unwrap().target.command.follows_children();
        assert!(follows("-- true") && !follows("--no-children -- true"));
        assert_eq!(subject("-p 1 --children"), "PID 1 and children");
        assert_eq!(subject("--children"), "all threads");
        assert_eq!(subject("-- sleep 1"), "`sleep 1` and children");
        assert_eq!(subject("--no-children -- sleep -p 1"), "`sleep -p 1`");
        for line in [
            "-p 1 -- true",
            "-t 1 -- true",
            "--user root",
            "--no-children",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
        assert!(parse("--user root -- true").is_ok());
        assert!(parse("--user no-such-user -- true").is_err());
    }
}
