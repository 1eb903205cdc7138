//! oncputime and offcputime as child processes that wallclock controls.

use std::collections::VecDeque;
use std::env;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::thread::{self, JoinHandle};

use anyhow::{Context, anyhow, bail};
use cli::Request;
use profile::Profile;
use rustix::io::FdFlags;
use rustix::process::{Signal, geteuid, set_parent_process_death_signal};

/// Maximum lines of a child's stderr that are kept: the last ones.
const LINES_KEPT: usize = 100;
/// The program that runs any tool of the suite, under the tool's name.
const EVERYTHING: &str = "systemscope";

/// Finds a program of the suite: beside wallclock, else as systemscope beside wallclock, else on
/// `PATH`. For root the function does not search `PATH`, where another user may have put a program
/// of that name.
///
/// # Errors
/// The program is in none of these places.
pub(crate) fn locate(program: &str) -> anyhow::Result<PathBuf> {
    let here = env::current_exe().context("cannot find the path of wallclock itself")?;
    let folder = here.parent().unwrap_or(Path::new("/"));
    let path = if geteuid().is_root() {
        None
    } else {
        env::var_os("PATH")
    };
    let on_path = path.iter().flat_map(env::split_paths);
    [program, EVERYTHING]
        .map(|name| folder.join(name))
        .into_iter()
        .chain(on_path.map(|folder| folder.join(program)))
        .find(|candidate| is_executable(candidate))
        .ok_or_else(|| {
            anyhow!(
                "cannot find `{program}`, which wallclock runs, in `{}`; \
                 install it beside wallclock",
                folder.display()
            )
        })
}

fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// A child whose window wallclock controls. Dropping it kills the process.
pub(crate) struct Child {
    name: &'static str,
    process: std::process::Child,
    control: UnixStream,
    unread: Vec<u8>,
    ready: bool,
    open: bool,
    gone: bool,
    /// Wait that set off a trigger, as text.
    triggered: Option<String>,
    /// Debug files that were fetched and that were not, as text.
    debug_files: Option<String>,
    first: Option<u64>,
    closed: bool,
    data: Option<JoinHandle<Result<Profile, capture::Error>>>,
    lines: Option<JoinHandle<Vec<String>>>,
}

/// Results of a child that succeeded.
pub(crate) struct Outcome {
    /// Measured profile.
    pub(crate) profile: Profile,
    /// Last lines on stderr, at most [`LINES_KEPT`].
    pub(crate) lines: Vec<String>,
    /// Debug files that were fetched and that were not, as text, with the name of the child.
    pub(crate) debug_files: Option<String>,
}

impl Child {
    /// Starts a child, and passes it one end of a socket with `--control-fd`.
    ///
    /// # Errors
    /// The program cannot be found or started.
    pub(crate) fn spawn(request: &Request) -> anyhow::Result<Child> {
        let name = request.tool();
        Child::spawn_program(&locate(name)?, name, &request.encode())
    }

    fn spawn_program(
        program: &Path,
        name: &'static str,
        arguments: &[impl AsRef<OsStr>],
    ) -> anyhow::Result<Child> {
        let (control, theirs) = UnixStream::pair().context("cannot make a control socket")?;
        control.set_nonblocking(true)?;
        let control_fd = theirs.as_raw_fd();
        let mut command = Command::new(program);
        if program.ends_with(EVERYTHING) {
            command.arg0(name);
        }
        command
            .args(arguments)
            .arg("--control-fd")
            .arg(control_fd.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // The terminal sends Ctrl-C to wallclock only, which then stops the children.
            .process_group(0);
        // SAFETY: the closure only makes async-signal-safe system calls between fork and exec, and
        // the descriptor is open in the child.
        unsafe {
            command.pre_exec(move || {
                set_parent_process_death_signal(Some(Signal::KILL))?;
                let control = BorrowedFd::borrow_raw(control_fd);
                rustix::io::fcntl_setfd(control, FdFlags::empty())?;
                Ok(())
            });
        }
        let mut process = command
            .spawn()
            .with_context(|| format!("cannot run `{}`", program.display()))?;
        let data = process.stdout.take().map(read_data);
        let lines = process
            .stderr
            .take()
            .map(|stderr| thread::spawn(move || read_lines(stderr)));
        Ok(Child {
            name,
            process,
            control,
            unread: Vec::new(),
            ready: false,
            open: false,
            gone: false,
            triggered: None,
            debug_files: None,
            first: None,
            closed: false,
            data,
            lines,
        })
    }

    /// Returns whether the child has reported that it is attached.
    pub(crate) fn is_ready(&self) -> bool {
        self.ready
    }

    /// Returns whether the child has reported that its BPF programs have the window's start.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Returns whether the child has reported that no target is left.
    pub(crate) fn has_no_targets(&self) -> bool {
        self.gone
    }

    /// Returns the wait that set off a trigger, as text.
    pub(crate) fn triggered(&self) -> Option<&str> {
        self.triggered.as_deref()
    }

    /// Returns the time at which the first awaited target appeared, in ns of CLOCK_MONOTONIC.
    pub(crate) fn first(&self) -> Option<u64> {
        self.first
    }

    /// Returns whether the child has closed its socket: it has ended, or is about to.
    pub(crate) fn has_hung_up(&self) -> bool {
        self.closed
    }

    /// Reads the lines that the child has sent so far, without waiting.
    pub(crate) fn receive(&mut self) {
        let mut bytes = [0; 256];
        while !self.closed {
            match self.control.read(&mut bytes) {
                Ok(0) => self.closed = true,
                Ok(length) => self.unread.extend(&bytes[..length]),
                // No bytes are left to read now, or the child ended without reading the last lines.
                // The end then resets the socket, and the next read returns 0.
                Err(_) => break,
            }
        }
        while let Some(end) = self.unread.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.unread.drain(..=end).collect();
            // The child's last line has its losses, which are in the capture as well.
            self.ready |= line == b"ready\n";
            self.open |= line == b"open\n";
            self.gone |= line == b"gone\n";
            let line = String::from_utf8_lossy(&line);
            let wait = line.strip_prefix("triggered ");
            self.triggered = (self.triggered.take()).or(wait.map(|it| it.trim_end().to_owned()));
            let fetched = line.strip_prefix("debuginfod ");
            self.debug_files =
                (self.debug_files.take()).or(fetched.map(|it| it.trim_end().to_owned()));
            let first = line.strip_prefix("first ");
            self.first = self
                .first
                .or(first.and_then(|time| time.trim_end().parse().ok()));
        }
    }

    /// Sends a line to the child. An error is ignored: `receive` notices a child that hung up.
    pub(crate) fn send(&mut self, line: &str) {
        let _ = self.control.write_all(format!("{line}\n").as_bytes());
    }

    /// Waits for the child's end, and returns its results.
    ///
    /// # Errors
    /// The child failed, or its data are no capture. The error of a failed child is its last line
    /// on stderr.
    pub(crate) fn finish(&mut self) -> anyhow::Result<Outcome> {
        let data = join(self.data.take());
        let lines = join(self.lines.take()).unwrap_or_default();
        let status = self.process.wait()?;
        let name = self.name;
        if !status.success() {
            let last = lines.last().map_or("it left no message", String::as_str);
            let last = last.strip_prefix(&format!("{name}: ")).unwrap_or(last);
            match status.code() {
                Some(_) => bail!("{name}: {last}"),
                None => bail!("{name} was killed ({status}); its last message: {last}"),
            }
        }
        let profile = match data {
            Some(Ok(profile)) => profile,
            None | Some(Err(capture::Error::CutOff)) => {
                bail!(
                    "{name} ended before it was told to; install {name} and wallclock of the same version"
                )
            }
            Some(Err(error)) => {
                return Err(error).context(format!("cannot read the data of {name}"));
            }
        };
        let debug_files = self.debug_files.take();
        Ok(Outcome {
            profile,
            lines,
            debug_files: debug_files.map(|it| format!("{name}: {it}")),
        })
    }
}

impl AsFd for Child {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // In most cases wallclock has waited for the child, and both calls do nothing.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Reads the child's data as they arrive, so that the child never waits for wallclock.
fn read_data(stdout: ChildStdout) -> JoinHandle<Result<Profile, capture::Error>> {
    thread::spawn(move || {
        let mut stdout = BufReader::with_capacity(1 << 16, stdout);
        let profile = capture::read(&mut stdout);
        // After an error the rest is discarded, so that the child does not fail on a closed pipe.
        let _ = std::io::copy(&mut stdout, &mut std::io::sink());
        profile
    })
}

fn read_lines(stderr: impl Read) -> Vec<String> {
    let mut lines = VecDeque::new();
    for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
        if lines.len() == LINES_KEPT {
            lines.pop_front();
        }
        lines.push_back(String::from_utf8_lossy(&line).into_owned());
    }
    lines.into()
}

fn join<T>(handle: Option<JoinHandle<T>>) -> Option<T> {
    handle?.join().ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn child() -> Child {
        Child::spawn_program(Path::new("/bin/sh"), "sh", &["-c", "exec sleep 60"]).unwrap()
    }

    #[test]
    fn a_child_that_is_dropped_is_killed() {
        let child = child();
        let folder = format!("/proc/{}", child.process.id());
        assert!(Path::new(&folder).exists());
        drop(child);
        assert!(!Path::new(&folder).exists());
    }

    #[test]
    fn a_child_that_died_with_our_words_unread_has_hung_up() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut child = child();
        child.control = ours;
        child.receive();
        assert!(!child.has_hung_up());
        theirs.write_all(b"ready\nfirst 5\n").unwrap();
        child.send("stop 7");
        drop(theirs);
        // A process that another test just forked holds the socket open until its execve().
        let deadline = Instant::now() + Duration::from_secs(10);
        while !child.has_hung_up() {
            assert!(Instant::now() < deadline);
            child.receive();
        }
        assert!(child.is_ready());
        assert_eq!(child.first(), Some(5));
    }
}
