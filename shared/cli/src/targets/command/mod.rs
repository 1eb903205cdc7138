//! A command that the tool starts and measures.

mod accounts;
mod spawn;
mod user;

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use loader::ProcessHandle;
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;
use report::CommandEnd;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use self::spawn::spawn_held;
use crate::error::{Ending, report};
use crate::{Planned, Signals, reason};

pub(crate) use self::user::User;

/// Exit status for a command that was found and cannot be executed, as in a shell.
const NOT_EXECUTABLE: u8 = 126;
/// Exit status for a command that was not found, as in a shell.
const NOT_FOUND: u8 = 127;
/// Number that a shell adds to the signal that ended a command.
const ENDED_BY_SIGNAL: i32 = 128;

/// A started command, held before its first instruction until it is released. Dropping a held
/// command kills it.
#[derive(Debug)]
pub struct HeldCommand {
    name: String,
    process: Pid,
    handle: ProcessHandle,
    is_held: bool,
}

impl HeldCommand {
    /// Starts a command, as `user` if given. The command inherits the standard streams, the
    /// folder, the terminal and the environment, except for the variables of the user.
    ///
    /// The thread that starts the command must also release it: ptrace(2) works by thread.
    ///
    /// # Errors
    /// The command cannot be executed: exit status 127 if it is not found, else 126.
    pub fn start(words: &[OsString], user: Option<&User>) -> anyhow::Result<HeldCommand> {
        let program = words.first().context("there is no command")?;
        let name = Path::new(program);
        let process = spawn_held(words, user).map_err(|error| not_run(name, user, &error))?;
        let handle = ProcessHandle::open(process.as_raw().cast_unsigned()).inspect_err(|_| {
            kill_and_wait(process);
        });
        Ok(HeldCommand {
            name: safe_name(name),
            process,
            handle: handle.context("cannot watch the command")?,
            is_held: true,
        })
    }

    /// Returns the process ID.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.as_raw().cast_unsigned()
    }

    /// Releases the command: it runs from its first instruction on.
    ///
    /// # Errors
    /// The process cannot be detached. A command that was killed meanwhile is no error.
    pub fn release(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.is_held) {
            return Ok(());
        }
        match ptrace::detach(self.process, None) {
            Ok(()) | Err(nix::Error::ESRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns how the command ended, or that it still runs, without waiting for its end.
    ///
    /// # Errors
    /// waitid(2) fails.
    pub fn end(&self) -> anyhow::Result<CommandEnd> {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        let status = waitid(Id::Pid(self.process), flags).context("cannot ask for the command")?;
        Ok(match status {
            WaitStatus::Exited(_, status) => CommandEnd::Exited(status),
            WaitStatus::Signaled(_, signal, _) => CommandEnd::Killed(signal as i32),
            _ => CommandEnd::Running,
        })
    }

    /// Waits for the command's end, and forwards a SIGTERM for this process to it. Returns the
    /// exit status; 128 + n if signal n ended the command.
    fn finish(self, signals: &Signals) -> anyhow::Result<u8> {
        let mut is_forwarded = false;
        while !self.handle.has_ended() {
            // Read before `asks_to_end`: a signal in between still ends the poll below.
            let has_arrived = signals.arrived();
            if signals.asks_to_end() && !std::mem::replace(&mut is_forwarded, true) {
                // The command may just have ended.
                let _ = kill(self.process, Signal::SIGTERM);
            }
            let mut sources = vec![PollFd::from_borrowed_fd(self.handle.as_fd(), PollFlags::IN)];
            // The descriptor stays readable after the first signal, so it is polled only
            // before. The second signal ends this process.
            if !has_arrived {
                sources.push(PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN));
            }
            match poll(&mut sources, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error).context("cannot wait for the command"),
            }
        }
        loop {
            match waitpid(self.process, None) {
                Ok(WaitStatus::Exited(_, code)) => return Ok(u8::try_from(code).unwrap_or(1)),
                Ok(WaitStatus::Signaled(_, signal, _)) => {
                    return Ok(u8::try_from(ENDED_BY_SIGNAL + signal as i32).unwrap_or(1));
                }
                Ok(_) | Err(nix::Error::EINTR) => {}
                Err(error) => return Err(error).context("cannot wait for the command"),
            }
        }
    }

    /// Redirects outputs from standard output, which belongs to the command, to default files.
    /// Returns these files.
    pub fn plan_files(&self, tool: &str, plan: &mut [Planned]) -> Vec<PathBuf> {
        let planned = plan.iter_mut().filter(|planned| planned.path.is_none());
        let files = planned.map(|planned| {
            let own = format!(".{}", planned.format.name());
            let ending = planned.format.endings().first().copied().unwrap_or(&own);
            planned.is_new = true;
            planned.path.insert(self.default_file(tool, ending)).clone()
        });
        files.collect()
    }

    /// Returns a file in the current folder. Its name has the tool, the command, the command's
    /// process ID and the time in seconds since 1970.
    #[must_use]
    pub fn default_file(&self, tool: &str, ending: &str) -> PathBuf {
        // A clock before 1970 gives 0.
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        let seconds = since_1970.map_or(0, |time| time.as_secs());
        format!("{tool}_{}_{}_{seconds}{ending}", self.name, self.pid()).into()
    }
}

/// Returns the exit status of a run: the command's, if there is one.
///
/// If the run failed after the command was released, this function prints the error and waits for
/// the command. The status is then a failure even if the command succeeds.
///
/// # Errors
/// The error in `outcome`, unless a command was released; or the command cannot be waited for.
pub fn conclude(
    called: &str,
    outcome: anyhow::Result<()>,
    command: Option<HeldCommand>,
    signals: Option<&Signals>,
) -> anyhow::Result<ExitCode> {
    let (Some(command), Some(signals)) = (command, signals) else {
        return outcome.map(|()| ExitCode::SUCCESS);
    };
    let least = match outcome {
        Ok(()) => 0,
        Err(error) if command.is_held => return Err(error),
        Err(error) => report(called, &error),
    };
    let status = command.finish(signals)?;
    Ok(ExitCode::from(if status == 0 { least } else { status }))
}

/// The descriptor is readable when the command has ended.
impl AsFd for HeldCommand {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

impl Drop for HeldCommand {
    fn drop(&mut self) {
        if self.is_held {
            kill_and_wait(self.process);
        }
    }
}

/// Returns the error for a command that cannot be run, with the exit status of a shell.
fn not_run(program: &Path, user: Option<&User>, error: &io::Error) -> anyhow::Error {
    let whose = user.map_or(String::new(), |user| format!(" as {}", user.name()));
    let (status, remedy) = match error.kind() {
        ErrorKind::NotFound => (NOT_FOUND, "; give its path, or put it on PATH"),
        _ => (NOT_EXECUTABLE, ""),
    };
    let program = program.display();
    Ending::NotRun {
        status,
        message: format!("cannot run `{program}`{whose}: {}{remedy}", reason(error)),
    }
    .into()
}

/// Returns a program's file name with characters that are safe in the name of another file.
fn safe_name(program: &Path) -> String {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let name = name.chars().map(|character| match character {
        '.' | '_' | '-' | '+' => character,
        _ if character.is_ascii_alphanumeric() => character,
        _ => '_',
    });
    name.collect()
}

fn kill_and_wait(process: Pid) {
    let _ = kill(process, Signal::SIGKILL);
    let _ = waitpid(process, None);
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use export::folded::Folded;

    use super::*;

    fn start(line: &str) -> anyhow::Result<HeldCommand> {
        let words: Vec<OsString> = line.splitn(3, ' ').map(OsString::from).collect();
        HeldCommand::start(&words, None)
    }

    /// Runs a command and returns the status of [`conclude`].
    fn ended(line: &str, outcome: anyhow::Result<()>) -> String {
        let mut command = start(line).unwrap();
        command.release().unwrap();
        let signals = Signals::never().unwrap();
        let status = conclude("tool", outcome, Some(command), Some(&signals));
        shown(status.unwrap())
    }

    /// Returns the debug text, the only way to compare an [`ExitCode`].
    fn shown(status: ExitCode) -> String {
        format!("{status:?}")
    }

    #[test]
    fn one_that_is_not_let_go_is_killed() {
        let command = start("sleep 60").unwrap();
        let folder = format!("/proc/{}", command.pid());
        assert!(Path::new(&folder).exists());
        drop(command);
        assert!(!Path::new(&folder).exists());
    }

    #[test]
    fn its_exit_status_is_passed_on() {
        let failed = || Err(anyhow::anyhow!("this is to be seen in a test"));
        let status = |number: u8| shown(ExitCode::from(number));
        assert_eq!(ended("sh -c exit 7", Ok(())), status(7));
        assert_eq!(ended("sh -c kill -9 $$", Ok(())), status(137));
        assert_eq!(ended("sh -c exit 7", failed()), status(7));
        assert_eq!(ended("true", Ok(())), status(0));
        assert_eq!(ended("true", failed()), status(1));
        // A command that was never released has no exit status.
        let signals = Signals::never().unwrap();
        let held = Some(start("true").unwrap());
        assert!(conclude("tool", failed(), held, Some(&signals)).is_err());
        assert!(conclude("tool", failed(), None, Some(&signals)).is_err());
        let none = conclude("tool", Ok(()), None, None).unwrap();
        assert_eq!(shown(none), status(0));
    }

    #[test]
    fn what_would_go_to_its_standard_output_has_a_file() {
        let command = start("sleep 60").unwrap();
        let planned = |path: Option<&str>| Planned {
            format: &Folded,
            path: path.map(PathBuf::from),
            is_new: false,
        };
        let mut plan = [planned(Some("a")), planned(None)];
        let files = command.plan_files("tool", &mut plan);
        let name = files[0].to_str().unwrap();
        let start = format!("tool_sleep_{}_", command.pid());
        let seconds = name
            .strip_prefix(&start)
            .and_then(|rest| rest.strip_suffix(".folded"));
        assert!(seconds.unwrap().parse::<u64>().unwrap() > 1_700_000_000);
        assert_eq!(files.len(), 1);
        assert_eq!(plan[1].path.as_ref(), files.first());
        assert_eq!([plan[0].is_new, plan[1].is_new], [false, true]);
        assert_eq!(plan[0].path.as_deref(), Some(Path::new("a")));
    }

    #[test]
    fn names_of_programs_are_safe_in_those_of_files() {
        let name = |program| safe_name(Path::new(program));
        assert_eq!(name("/usr/bin/ruby3.1"), "ruby3.1");
        assert_eq!(name("a_b-c+d e$;é"), "a_b-c+d_e___");
    }
}
