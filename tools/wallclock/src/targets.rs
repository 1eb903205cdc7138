//! The processes to measure: handles that show when they end, and their command lines.

use std::fs::{self, File};
use std::os::fd::{AsFd, BorrowedFd};

use anyhow::{Context, bail};
use cli::{CgroupFlags, HeldCommand, ProcessFlags, Processes, WaitFlags};
use loader::ProcessHandle;
use profile::Text;

/// The processes to measure.
#[derive(Default)]
pub(crate) struct Targets {
    /// Process IDs, ascending; empty for cgroups and the whole machine.
    pub(crate) pids: Vec<u32>,
    /// Names of awaited processes.
    pub(crate) awaited: Vec<String>,
    /// Handles of the processes that have not ended.
    alive: Vec<ProcessHandle>,
    /// True if the first process in a cgroup is awaited.
    pub(crate) awaits_members: bool,
    /// True if other processes may join, as in a cgroup.
    may_grow: bool,
}

impl Targets {
    /// Returns the targets for a cgroup or the whole machine, where processes come and go.
    pub(crate) fn open_ended(cgroups: &CgroupFlags, wait: &WaitFlags) -> Targets {
        Targets {
            may_grow: true,
            awaits_members: wait.awaits_members(cgroups),
            ..Targets::default()
        }
    }

    /// Opens handles of the chosen processes. A process that was found by name may have ended.
    ///
    /// # Errors
    /// A process given by its ID does not exist, is a thread, or has ended; or no process is left.
    pub(crate) fn new(flags: &ProcessFlags, wait: &WaitFlags) -> anyhow::Result<Targets> {
        let mut targets = Targets::open(flags.all())?;
        targets.awaited = wait.names(flags);
        if targets.alive.is_empty() && targets.awaited.is_empty() {
            bail!("every process of that name has ended; --wait waits for the next one");
        }
        Ok(targets)
    }

    fn open<'a>(chosen: impl Iterator<Item = &'a Processes> + Clone) -> anyhow::Result<Targets> {
        let given = Processes::given(chosen.clone());
        cli::check_processes(&given)?;
        cli::check_width(&given)?;
        let mut targets = Targets::default();
        for pid in Processes::ids(chosen) {
            let handle =
                ProcessHandle::open(pid).with_context(|| format!("cannot watch process {pid}"));
            match handle {
                Ok(handle) if !handle.has_ended() => {
                    targets.pids.push(pid);
                    targets.alive.push(handle);
                }
                // A process that was found by name may be missing.
                _ if !given.contains(&pid) => {}
                Ok(_) => bail!("process {pid} has already ended (a zombie); give one that runs"),
                Err(error) => return Err(error),
            }
        }
        Ok(targets)
    }

    /// Returns the targets for a command that wallclock started.
    ///
    /// # Errors
    /// The command's process cannot be watched.
    pub(crate) fn of_command(command: &HeldCommand) -> anyhow::Result<Targets> {
        let pid = command.pid();
        let handle = ProcessHandle::open(pid).context("cannot watch the command")?;
        Ok(Targets {
            pids: vec![pid],
            alive: vec![handle],
            ..Targets::default()
        })
    }

    /// Returns whether no target exists yet.
    pub(crate) fn are_awaited(&self) -> bool {
        self.pids.is_empty() && !self.awaited.is_empty() || self.awaits_members
    }

    /// Removes processes that have ended. Returns whether no target is left. A cgroup or a machine
    /// may always get more targets.
    pub(crate) fn remove_ended(&mut self) -> bool {
        self.alive.retain(|handle| !handle.has_ended());
        self.alive.is_empty() && !self.may_grow
    }

    /// Returns the handles of the processes that had not ended at the last check.
    pub(crate) fn handles(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.alive.iter().map(AsFd::as_fd)
    }
}

/// Returns a process's command line on one line, cut after 64 KiB. Without one the function
/// returns the process's name in brackets, as `ps` shows kernel threads.
pub(crate) fn command_line_of(pid: u32) -> Text {
    let arguments = File::open(format!("{}/cmdline", process::living_folder(pid)))
        .and_then(|file| process::read_command_line(pid, &file))
        .unwrap_or_default();
    let text = String::from_utf8_lossy(&arguments)
        .trim_end_matches('\0')
        .replace('\0', " ");
    if !text.is_empty() {
        return profile::text::function(&text).as_ref().into();
    }
    let name = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    let name = name.strip_suffix(b"\n").unwrap_or(&name);
    match name {
        [] => profile::text::comm(name),
        name => format!("[{}]", profile::text::comm(name)).into(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::process::Command;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn an_ended_process_is_noticed_and_refused() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let mut targets = Targets::open(
            [child.id(), std::process::id()]
                .map(Processes::Given)
                .iter(),
        )
        .unwrap();
        assert!(!targets.remove_ended());
        assert_eq!(targets.handles().count(), 2);
        child.kill().unwrap();
        // The child stays a zombie until it is waited for.
        let deadline = Instant::now() + Duration::from_secs(10);
        let of_child = targets.pids.iter().position(|pid| *pid == child.id());
        while !targets.alive[of_child.unwrap()].has_ended() {
            assert!(Instant::now() < deadline);
        }
        let given = [Processes::Given(child.id())];
        let message = Targets::open(given.iter()).err().unwrap().to_string();
        assert!(message.contains("already ended"), "{message}");
        // A process that was found by name may be missing.
        let found = [Processes::Found {
            pids: vec![child.id(), std::process::id(), u32::MAX >> 1],
            since_ns: cli::monotonic_ns(),
        }];
        let found = Targets::open(found.iter()).unwrap();
        assert_eq!(found.pids, [std::process::id()]);
        assert!(!targets.remove_ended());
        assert_eq!(targets.handles().count(), 1);
        child.wait().unwrap();
    }
}
