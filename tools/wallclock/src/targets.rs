//! The processes that are measured: whether they still are, and what they are called.

use std::fs::{self, File};
use std::os::fd::{AsFd, BorrowedFd};

use anyhow::{Context, bail};
use cli::{CgroupFlags, HeldCommand, ProcessFlags, Processes, WaitFlags};
use loader::ProcessHandle;
use profile::Text;

/// The processes that are measured.
#[derive(Default)]
pub(crate) struct Targets {
    /// By ID, ascending; none where all of the machine is measured.
    pub(crate) pids: Vec<u32>,
    /// Names that are waited for.
    pub(crate) awaited: Vec<String>,
    /// Those that have not ended.
    alive: Vec<ProcessHandle>,
    /// Whether the first in a cgroup is waited for.
    pub(crate) awaits_members: bool,
    /// Whether there may be others later, as in a cgroup.
    may_grow: bool,
}

impl Targets {
    /// Whoever is on the machine or in a cgroup.
    pub(crate) fn whoever(cgroups: &CgroupFlags, wait: &WaitFlags) -> Targets {
        Targets {
            may_grow: true,
            awaits_members: wait.awaits_members(cgroups),
            ..Targets::default()
        }
    }

    /// Takes hold of processes. What was found by name may have ended since.
    ///
    /// # Errors
    /// The first given by its ID that does not exist, or is a thread, or has ended; or none
    /// is left.
    pub(crate) fn new(flags: &ProcessFlags, wait: &WaitFlags) -> anyhow::Result<Targets> {
        let mut targets = Targets::of(flags.all())?;
        targets.awaited = wait.names(flags);
        match targets.alive.is_empty() && targets.awaited.is_empty() {
            true => bail!("every process of that name has ended"),
            false => Ok(targets),
        }
    }

    fn of<'a>(chosen: impl Iterator<Item = &'a Processes> + Clone) -> anyhow::Result<Targets> {
        let given = Processes::given(chosen.clone());
        cli::check_processes(&given)?;
        cli::check_width(&given)?;
        let mut targets = Targets::default();
        for pid in Processes::ids(chosen) {
            let handle = ProcessHandle::open(pid)
                .with_context(|| format!("cannot watch process {pid}; does it still exist?"));
            match handle {
                Ok(handle) if !handle.has_ended() => {
                    targets.pids.push(pid);
                    targets.alive.push(handle);
                }
                // Of those that were found by name it is no more than one fewer.
                _ if !given.contains(&pid) => {}
                Ok(_) => bail!("process {pid} has already ended (a zombie); give one that runs"),
                Err(error) => return Err(error),
            }
        }
        Ok(targets)
    }

    /// A command, which was started for this.
    ///
    /// # Errors
    /// It cannot be watched.
    pub(crate) fn of_command(command: &HeldCommand) -> anyhow::Result<Targets> {
        let pid = command.pid();
        let handle = ProcessHandle::open(pid).context("cannot watch the command")?;
        Ok(Targets {
            pids: vec![pid],
            alive: vec![handle],
            ..Targets::default()
        })
    }

    /// Whether there is nobody to measure yet.
    pub(crate) fn are_awaited(&self) -> bool {
        self.pids.is_empty() && !self.awaited.is_empty() || self.awaits_members
    }

    /// Lets go of those that have ended; whether none is left. A machine never is empty.
    pub(crate) fn all_gone(&mut self) -> bool {
        self.alive.retain(|handle| !handle.has_ended());
        self.alive.is_empty() && !self.may_grow
    }

    /// The handles of those that had not ended when last looked at.
    pub(crate) fn handles(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.alive.iter().map(AsFd::as_fd)
    }
}

/// Returns a process's command line on one line, cut after 64 KiB; its name in brackets where it
/// has none, as `ps` shows kernel threads.
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
        let mut targets = Targets::of(
            [child.id(), std::process::id()]
                .map(Processes::Given)
                .iter(),
        )
        .unwrap();
        assert!(!targets.all_gone());
        assert_eq!(targets.handles().count(), 2);
        child.kill().unwrap();
        // Until it is waited for it stays as a zombie.
        let deadline = Instant::now() + Duration::from_secs(10);
        let of_child = targets.pids.iter().position(|pid| *pid == child.id());
        while !targets.alive[of_child.unwrap()].has_ended() {
            assert!(Instant::now() < deadline);
        }
        let given = [Processes::Given(child.id())];
        let message = Targets::of(given.iter()).err().unwrap().to_string();
        assert!(message.contains("already ended"), "{message}");
        // Of those that were found by name it is no more than one fewer.
        let found = [Processes::Found {
            pids: vec![child.id(), std::process::id(), u32::MAX >> 1],
            since_ns: cli::monotonic_ns(),
        }];
        let found = Targets::of(found.iter()).unwrap();
        assert_eq!(found.pids, [std::process::id()]);
        assert!(!targets.all_gone());
        assert_eq!(targets.handles().count(), 1);
        child.wait().unwrap();
    }
}
