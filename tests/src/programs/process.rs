//! A process that a test started: watched, timed out, and ended with the test.

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

/// How often the memory of a process is looked at. Looking takes CPU time from what is tested.
const LOOK_AGAIN: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};

/// A process of its own group, killed with all of the group when dropped.
#[derive(Debug)]
pub struct Running {
    pid: Pid,
    name: String,
    reaped: bool,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
    /// What came on stderr so far.
    said: Arc<Mutex<Vec<u8>>>,
}

/// What a process left behind.
#[derive(Debug)]
pub struct Finished {
    /// Exit status, `None` when a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// All of stdout, where it was not given away.
    pub stdout: Vec<u8>,
    /// All of stderr.
    pub stderr: String,
    /// The most memory it ever held, in KiB.
    pub peak_rss_kib: u64,
}

impl Running {
    /// Starts a command in a process group of its own, with its stderr and,
    /// when `keep_stdout`, its stdout collected.
    pub fn spawn(mut command: Command, keep_stdout: bool) -> Running {
        command.stderr(Stdio::piped());
        Running::start(command, keep_stdout, None)
    }

    /// The same, with a terminal for its stderr.
    pub fn spawn_on_a_terminal(mut command: Command) -> Running {
        let (terminal, screen) = terminal().expect("a terminal");
        command.stderr(screen);
        Running::start(command, true, Some(terminal))
    }

    // Reaped by waitpid in `reap`.
    #[allow(clippy::zombie_processes)]
    fn start(mut command: Command, keep_stdout: bool, terminal: Option<File>) -> Running {
        let name = command.get_program().to_string_lossy().into_owned();
        if keep_stdout {
            command.stdout(Stdio::piped());
        }
        command.process_group(0);
        // SAFETY: `begin` makes system calls that are safe after a fork.
        unsafe { command.pre_exec(begin) };
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("start {name}: {error}"));
        // Our ends of what it writes to.
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

    /// `sleep 1000`, asleep.
    pub fn asleep() -> Running {
        let mut command = Command::new("sleep");
        command.arg("1000");
        let running = Running::spawn(command, true);
        accounts_at_rest(running.pid());
        running
    }

    /// Waits until some words are on its stderr, or it has ended.
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

    /// Its process ID.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().cast_unsigned()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal)
            .unwrap_or_else(|error| panic!("signal {}: {error}", self.name));
    }

    /// Sends all of its group a signal, as a terminal does.
    pub fn signal_group(&self, signal: Signal) {
        kill_process_group(self.pid, signal)
            .unwrap_or_else(|error| panic!("signal the group of {}: {error}", self.name));
    }

    /// Whether it is still there.
    pub fn is_running(&mut self) -> bool {
        self.reap(true).is_none()
    }

    /// Waits for its end.
    ///
    /// # Panics
    ///
    /// When it takes longer than `patience`.
    pub fn finish_within(self, patience: Duration) -> Finished {
        let name = self.name.clone();
        self.try_finish_within(patience).unwrap_or_else(|stderr| {
            panic!("{name} did not end within {patience:?}; its stderr:\n{stderr}")
        })
    }

    /// Waits for its end, and kills it when that takes longer than `patience`.
    ///
    /// # Errors
    /// Its stderr, if it had to be killed.
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
                    "{name} ended, but a child of its keeps its output open"
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

    /// Waits until it ends, but not longer than [`LOOK_AGAIN`].
    fn wait_a_moment(&self) {
        let process = pidfd_open(self.pid, PidfdFlags::empty()).expect("a child's descriptor");
        let mut ends = [PollFd::new(&process, PollFlags::IN)];
        // An interrupted wait is a short one.
        let _ = poll(&mut ends, Some(&LOOK_AGAIN));
    }

    /// The most memory it has held since it was executed, 0 once it is gone.
    /// The rusage of an ended child would not do: it counts what the test
    /// itself held when it forked.
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

    /// The exit status once it ended; `peek` leaves it to be collected later.
    fn reap(&mut self, peek: bool) -> Option<i32> {
        if peek {
            // SAFETY: an all-zero siginfo is a valid one, and waitid fills it in.
            let mut info: libc::siginfo_t = unsafe { mem::zeroed() };
            let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            // SAFETY: `info` outlives the call.
            let result = unsafe { libc::waitid(libc::P_PID, self.pid(), &raw mut info, options) };
            assert_eq!(result, 0, "wait for {}", self.name);
            // SAFETY: waitid filled the fields of a child's change of state, or left zeros.
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
    /// # Panics
    ///
    /// When the exit status is not 0.
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

/// What a new process does first. What runs below `nohup` ignores SIGHUP, and so
/// would the tools. Nobody outlives a test that is interrupted, or its runner.
fn begin() -> io::Result<()> {
    // Whoever runs the tests may ignore them, as shells do for what is in the background.
    for signal in [libc::SIGHUP, libc::SIGINT] {
        // SAFETY: the default action is a valid one.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(())
}

/// The processes whose parent is this one.
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

/// A terminal's two ends: ours, and the one for programs.
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
                // A terminal that nobody has open any more.
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
        // It need not have been collected: who inherits it may take its time.
        let deadline = Instant::now() + Duration::from_secs(60);
        while !child.has_ended() {
            assert!(Instant::now() < deadline, "the group is still there");
            sleep(Duration::from_millis(5));
        }
    }
}
