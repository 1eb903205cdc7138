//! The processes that are measured: whether they still are, and what they are called.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd};

use anyhow::{Context, bail};
use loader::ProcessHandle;

/// The processes that have not ended.
pub(crate) struct Targets {
    alive: Vec<ProcessHandle>,
}

impl Targets {
    /// Takes hold of processes that exist.
    ///
    /// # Errors
    /// The first that does not, or that is a thread, or that has ended.
    pub(crate) fn new(pids: &[u32]) -> anyhow::Result<Targets> {
        cli::check_processes(pids)?;
        let mut targets = Targets { alive: Vec::new() };
        for &pid in pids {
            let handle = ProcessHandle::open(pid)
                .with_context(|| format!("cannot watch process {pid}; does it still exist?"))?;
            if handle.has_ended() {
                bail!("process {pid} has already ended (a zombie); give one that runs");
            }
            targets.alive.push(handle);
        }
        Ok(targets)
    }

    /// Lets go of those that have ended; whether none is left.
    pub(crate) fn all_gone(&mut self) -> bool {
        self.alive.retain(|handle| !handle.has_ended());
        self.alive.is_empty()
    }

    /// The handles of those that had not ended when last looked at.
    pub(crate) fn handles(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.alive.iter().map(AsFd::as_fd)
    }
}

/// A process's command line on one line; its name in brackets where it has
/// none, as `ps` shows kernel threads.
pub(crate) fn command_line(pid: u32) -> String {
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let text = String::from_utf8_lossy(&arguments)
        .trim_end_matches('\0')
        .replace('\0', " ")
        .replace(char::is_control, "?");
    if !text.is_empty() {
        return text;
    }
    let name = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    let name = name.strip_suffix(b"\n").unwrap_or(&name);
    match name {
        [] => profile::text::comm(name),
        name => format!("[{}]", profile::text::comm(name)),
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
        let mut targets = Targets::new(&[child.id(), std::process::id()]).unwrap();
        assert!(!targets.all_gone());
        assert_eq!(targets.handles().count(), 2);
        child.kill().unwrap();
        // Until it is waited for it stays as a zombie.
        let deadline = Instant::now() + Duration::from_secs(10);
        while !targets.alive[0].has_ended() {
            assert!(Instant::now() < deadline);
        }
        let message = Targets::new(&[child.id()]).err().unwrap().to_string();
        assert!(message.contains("already ended"), "{message}");
        assert!(!targets.all_gone());
        assert_eq!(targets.handles().count(), 1);
        child.wait().unwrap();
    }

    #[test]
    fn command_lines() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        // Between fork and exec it is still called as we are.
        let deadline = Instant::now() + Duration::from_secs(10);
        while command_line(child.id()) != "sleep 1000" {
            assert!(Instant::now() < deadline);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(command_line(u32::MAX), "[unnamed]");
    }
}
