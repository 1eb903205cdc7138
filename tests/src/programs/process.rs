//! Processes that tests start. Their output is collected, their time is limited, and they end with
//! the test.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::mem;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open,
    set_parent_process_death_signal,
};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::accounts_at_rest;

/// Interval between reads of a process's memory size. Each read takes CPU time from the tested
/// program.
const LOOK_AGAIN: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};

/// Process in a process group of its own. Dropping it kills the whole group.
#[derive(Debug)]
pub struct Running {
    pid: Pid,
    name: String,
    reaped: bool,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
    /// Output on stderr so far.
    said: Arc<Mutex<Vec<u8>>>,
}

/// Result of a process that has ended.
#[derive(Debug)]
pub struct Finished {
    /// Exit status; `None` if a signal ended the process.
    pub code: Option<i32>,
    /// Signal that ended the process.
    pub signal: Option<i32>,
    /// All output on stdout; empty if stdout was not collected.
    pub stdout: Vec<u8>,
    /// All output on stderr.
    pub stderr: String,
    /// Peak resident memory, in KiB.
    pub peak_rss_kib: u64,
}

impl Running {
    /// Starts a command in a process group of its own. Collects stderr, and stdout if `keep_stdout`
    /// is set.
    pub fn spawn(mut command: Command, keep_stdout: bool) -> Running {
        command.stderr(Stdio::piped());
        Running::start(command, keep_stdout, None)
    }

    /// Starts a command with a terminal as its stderr, and collects stdout and stderr.
    pub fn spawn_on_a_terminal(mut command: Command) -> Running {
        let (terminal, screen) = terminal().expect("a terminal");
        command.stderr(screen);
        Running::start(command, true, Some(terminal))
    }

    // `reap` collects the process with waitpid.
    #[allow(clippy::zombie_processes)]
    fn start(mut command: Command, keep_stdout: bool, terminal: Option<File>) -> Running {
        let name = command.get_program().to_string_lossy().into_owned();
        if keep_stdout {
            command.stdout(Stdio::piped());
        }
        command.process_group(0);
        // SAFETY: `begin` makes only system calls that are safe after a fork.
        unsafe { command.pre_exec(begin) };
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("start {name}: {error}"));
        // The command holds copies of the pipes' write ends.
        drop(command);
        let said = Arc::new(Mutex::new(Vec::new()));
        let collect_stdout = |pipe| collect(pipe, Arc::default());
        let collect_stderr = |pipe| collect(pipe, Arc::clone(&said));
        let collect_terminal = |terminal| collect(terminal, Arc::clone(&said));
        Running {
            pid: Pid::from_child(&child),
            name,
            reaped: false,
            stdout: child
                .stdout
                .take()
                .filter(|_| keep_stdout)
                .map(collect_stdout),
            stderr: (child.stderr.take().map(collect_stderr))
                .or_else(|| terminal.map(collect_terminal)),
            said,
        }
    }

    /// Starts `sleep 1000`, and waits until it sleeps.
    pub fn asleep() -> Running {
        let mut command = Command::new("sleep");
        command.arg("1000");
        let running = Running::spawn(command, true);
        accounts_at_rest(running.pid());
        running
    }

    /// Waits until the process's stderr contains `words`, or the process has ended.
    pub fn wait_until_said(&mut self, words: &str, patience: Duration) {
        let deadline = Instant::now() + patience;
        let said = Arc::clone(&self.said);
        let has_said = || String::from_utf8_lossy(&said.lock().unwrap()).contains(words);
        while !has_said() && self.is_running() {
            assert!(
                Instant::now() < deadline,
                "{} did not say {words:?} within {patience:?}",
                self.name
            );
            sleep(Duration::from_millis(2));
        }
    }

    /// Returns the process ID.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().cast_unsigned()
    }

    /// Sends the process a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal)
            .unwrap_or_else(|error| panic!("signal {}: {error}", self.name));
    }

    /// Sends a signal to the whole process group, as a terminal does.
    pub fn signal_group(&self, signal: Signal) {
        kill_process_group(self.pid, signal)
            .unwrap_or_else(|error| panic!("signal the group of {}: {error}", self.name));
    }

    /// Returns whether the process has not ended.
    pub fn is_running(&mut self) -> bool {
        self.reap(true).is_none()
    }

    /// Waits for the end of the process.
    ///
    /// # Panics
    ///
    /// Panics if the end takes longer than `patience`.
    pub fn finish_within(self, patience: Duration) -> Finished {
        let name = self.name.clone();
        self.try_finish_within(patience).unwrap_or_else(|stderr| {
            panic!("{name} did not end within {patience:?}; its stderr:\n{stderr}")
        })
    }

    /// Waits for the end of the process. Kills the process if its end takes longer than `patience`.
    ///
    /// # Errors
    ///
    /// The stderr of the process, if it had to be killed.
    pub fn try_finish_within(mut self, patience: Duration) -> Result<Finished, String> {
        let deadline = Instant::now() + patience;
        let mut peak_rss_kib = 0;
        let status = loop {
            peak_rss_kib = peak_rss_kib.max(self.peak_rss_kib());
            if let Some(end) = self.reap(false) {
                break end;
            }
            if Instant::now() > deadline {
                self.kill();
                let stderr = self.stderr.take().map(|reader| reader.join().unwrap());
                let stderr = stderr.unwrap_or_default();
                return Err(String::from_utf8_lossy(&stderr).into_owned());
            }
            self.wait_a_moment();
        };
        let name = self.name.clone();
        let take = |reader: Option<JoinHandle<Vec<u8>>>| {
            let Some(reader) = reader else {
                return Vec::new();
            };
            while !reader.is_finished() {
                assert!(
                    Instant::now() < deadline,
                    "{name} ended, but one of its children keeps its output open"
                );
                sleep(Duration::from_millis(1));
            }
            reader.join().unwrap()
        };
        Ok(Finished {
            code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
            signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
            stdout: take(self.stdout.take()),
            stderr: String::from_utf8_lossy(&take(self.stderr.take())).into_owned(),
            peak_rss_kib,
        })
    }

    /// Waits until the process ends, at most for [`LOOK_AGAIN`].
    fn wait_a_moment(&self) {
        let process = pidfd_open(self.pid, PidfdFlags::empty()).expect("a child's descriptor");
        let mut ends = [PollFd::new(&process, PollFlags::IN)];
        // A signal only makes the wait shorter.
        let _ = poll(&mut ends, Some(&LOOK_AGAIN));
    }

    /// Returns the peak memory of the process since it executed its program, or 0 once it has
    /// ended. The rusage of an ended child is no substitute, because it includes the memory of the
    /// test at the fork.
    fn peak_rss_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid()));
        status
            .unwrap_or_default()
            .lines()
            .find_map(|line| {
                line.strip_prefix("VmHWM:")?
                    .split_whitespace()
                    .next()?
                    .parse()
                    .ok()
            })
            .unwrap_or(0)
    }

    /// Returns the wait status once the process has ended. With `peek` it returns 0 instead, and
    /// the process remains a zombie.
    fn reap(&mut self, peek: bool) -> Option<i32> {
        if peek {
            // SAFETY: an all-zero siginfo is valid, and waitid fills it in.
            let mut info: libc::siginfo_t = unsafe { mem::zeroed() };
            let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            // SAFETY: `info` outlives the call.
            let result = unsafe { libc::waitid(libc::P_PID, self.pid(), &raw mut info, options) };
            assert_eq!(result, 0, "wait for {}", self.name);
            // SAFETY: waitid has filled the fields of a child's state change, or left zeros.
            let ended = unsafe { info.si_pid() } != 0;
            return ended.then_some(0);
        }
        let mut status = 0;
        let pid = self.pid.as_raw_nonzero().get();
        // SAFETY: the pointer is to a local that outlives the call.
        let ended = unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) };
        assert!(ended >= 0, "wait for {}", self.name);
        self.reaped = ended > 0;
        self.reaped.then_some(status)
    }

    fn kill(&mut self) {
        // The group may outlive its leader, and either may be gone already.
        let _ = kill_process_group(self.pid, Signal::KILL);
        while !self.reaped && self.reap(false).is_none() {
            sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Finished {
    /// Checks that the exit status is 0, and returns the result.
    ///
    /// # Panics
    ///
    /// Panics if the exit status is not 0.
    #[track_caller]
    pub fn succeeded(self) -> Finished {
        assert_eq!(
            (self.code, self.signal),
            (Some(0), None),
            "failed; its stderr:\n{}",
            self.stderr
        );
        self
    }
}

/// Prepares a new process before it executes its program. The process does not ignore SIGHUP, as it
/// would under `nohup`. The kernel kills the process when the thread that started it ends.
fn begin() -> io::Result<()> {
    // The parent may ignore these signals, as background jobs of shells do.
    for signal in [libc::SIGHUP, libc::SIGINT] {
        // SAFETY: the default action is valid.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(())
}

/// Returns the processes whose parent is `pid`.
pub fn children_of(pid: u32) -> Vec<u32> {
    let is_child = |candidate: &u32| {
        fs::read(format!("/proc/{candidate}/status")).is_ok_and(|status| {
            String::from_utf8_lossy(&status)
                .lines()
                .any(|line| line == format!("PPid:\t{pid}"))
        })
    };
    let processes = fs::read_dir("/proc").unwrap();
    let numbers = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers.filter(is_child).collect()
}

/// Opens a terminal, and returns its two ends: the end for the test, and the end for programs.
fn terminal() -> io::Result<(File, File)> {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let name = ptsname(&ours, Vec::new())?;
    let mut options = File::options();
    options.write(true).custom_flags(libc::O_NOCTTY);
    let screen = options.open(OsStr::from_bytes(name.as_bytes()))?;
    Ok((ours.into(), screen))
}

fn collect(
    mut pipe: impl Read + Send + 'static,
    so_far: Arc<Mutex<Vec<u8>>>,
) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut some = [0; 1 << 16];
        loop {
            let length = match pipe.read(&mut some) {
                // No program holds the terminal open any more.
                Err(error) if error.raw_os_error() == Some(libc::EIO) => 0,
                read => read.expect("read a child's output"),
            };
            match length {
                0 => return mem::take(&mut *so_far.lock().unwrap()),
                length => so_far.lock().unwrap().extend_from_slice(&some[..length]),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use loader::ProcessHandle;

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn status_and_output_are_collected() {
        let running = Running::spawn(shell("echo data; echo talk >&2; sleep 0.1; exit 3"), true);
        let finished = running.finish_within(Duration::from_secs(5));
        assert_eq!((finished.code, finished.signal), (Some(3), None));
        assert_eq!(
            (finished.stdout.as_slice(), finished.stderr.as_str()),
            (&b"data\n"[..], "talk\n")
        );
        assert!(finished.peak_rss_kib > 100, "{} KiB", finished.peak_rss_kib);
    }

    #[test]
    fn a_signal_is_not_an_exit_status() {
        let running = Running::spawn(shell("exec sleep 60"), true);
        running.signal(Signal::TERM);
        let finished = running.finish_within(Duration::from_secs(5));
        assert_eq!(
            (finished.code, finished.signal),
            (None, Some(libc::SIGTERM))
        );
    }

    #[test]
    fn a_dropped_process_takes_its_group_along() {
        let running = Running::spawn(shell("sleep 1000 & wait"), true);
        let child = loop {
            if let [child] = children_of(running.pid())[..] {
                break ProcessHandle::open(child).unwrap();
            }
            sleep(Duration::from_millis(5));
        };
        drop(running);
        // The child's new parent may not wait for it at once.
        let deadline = Instant::now() + Duration::from_secs(60);
        while !child.has_ended() {
            assert!(Instant::now() < deadline, "the group still exists");
            sleep(Duration::from_millis(5));
        }
    }
}
