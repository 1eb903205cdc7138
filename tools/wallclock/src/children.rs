//! oncputime and offcputime as child processes under control.

use std::collections::VecDeque;
use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::thread::{self, JoinHandle};

use anyhow::{Context, anyhow, bail};
use profile::{Profile, capture};
use rustix::io::FdFlags;
use rustix::process::{Signal, geteuid, set_parent_process_death_signal};

/// How many of a child's last lines on stderr are kept.
const LINES_KEPT: usize = 100;
/// The program that is any of the suite's under its name.
const EVERYTHING: &str = "systemscope";

/// Finds a program of the suite: beside this one, else as systemscope beside this one, which is
/// any of them by its name, else on `PATH`. Root does not search `PATH`, where another user
/// could have put a program of that name.
///
/// # Errors
/// The program is in none of these places.
pub(crate) fn locate(program: &str) -> anyhow::Result<PathBuf> {
    let here = env::current_exe().context("cannot tell where wallclock itself is")?;
    let folder = here.parent().unwrap_or(Path::new("/"));
    let path = match geteuid().is_root() {
        true => None,
        false => env::var_os("PATH"),
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

/// A child that measures when it is told to. Killed when dropped.
pub(crate) struct Child {
    name: &'static str,
    process: std::process::Child,
    control: UnixStream,
    unread: Vec<u8>,
    ready: bool,
    open: bool,
    gone: bool,
    first: Option<u64>,
    closed: bool,
    data: Option<JoinHandle<Result<Profile, capture::Error>>>,
    words: Option<JoinHandle<Vec<String>>>,
}

/// What a child leaves behind when all went well.
pub(crate) struct Outcome {
    /// What it measured.
    pub(crate) profile: Profile,
    /// Its lines on stderr, the last hundred.
    pub(crate) words: Vec<String>,
}

impl Child {
    /// Starts a child, with one end of a socket whose number it is told.
    ///
    /// # Errors
    /// The program is not there or cannot be started.
    pub(crate) fn spawn(name: &'static str, arguments: &[&str]) -> anyhow::Result<Child> {
        Child::spawn_program(&locate(name)?, name, arguments)
    }

    fn spawn_program(
        program: &Path,
        name: &'static str,
        arguments: &[&str],
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
            // Ctrl-C is for wallclock, which then tells the children.
            .process_group(0);
        // SAFETY: between fork and exec only system calls are made, all
        // async-signal-safe; the descriptor is open in the child as it is here.
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
        let words = process
            .stderr
            .take()
            .map(|stderr| thread::spawn(move || read_words(stderr)));
        Ok(Child {
            name,
            process,
            control,
            unread: Vec::new(),
            ready: false,
            open: false,
            gone: false,
            first: None,
            closed: false,
            data,
            words,
        })
    }

    /// Whether it has said that it is attached.
    pub(crate) fn is_ready(&self) -> bool {
        self.ready
    }

    /// Whether it has said that its programs know the window.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Whether it has said that nothing is left to measure.
    pub(crate) fn sees_nobody(&self) -> bool {
        self.gone
    }

    /// When the first target came that was waited for, CLOCK_MONOTONIC, nanoseconds.
    pub(crate) fn first(&self) -> Option<u64> {
        self.first
    }

    /// Whether it has hung up: it has ended, or is about to.
    pub(crate) fn has_hung_up(&self) -> bool {
        self.closed
    }

    /// Takes in what it has said so far, without waiting.
    pub(crate) fn listen(&mut self) {
        let mut bytes = [0; 256];
        while !self.closed {
            match self.control.read(&mut bytes) {
                Ok(0) => self.closed = true,
                Ok(length) => self.unread.extend(&bytes[..length]),
                // There is no more yet. Or a child died with our words unread, which resets
                // the line: that is told once, and next that it has ended.
                Err(_) => break,
            }
        }
        while let Some(end) = self.unread.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.unread.drain(..=end).collect();
            // Its last word, what it lost, is in the capture, too.
            self.ready |= line == b"ready\n";
            self.open |= line == b"open\n";
            self.gone |= line == b"gone\n";
            let line = String::from_utf8_lossy(&line);
            let first = line.strip_prefix("first ");
            self.first = self
                .first
                .or(first.and_then(|time| time.trim_end().parse().ok()));
        }
    }

    /// Says a line to it. One that has hung up is found out by listening.
    pub(crate) fn tell(&mut self, line: &str) {
        let _ = self.control.write_all(format!("{line}\n").as_bytes());
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// It failed (its own last words are the message), or its data make no sense.
    pub(crate) fn finish(&mut self) -> anyhow::Result<Outcome> {
        let data = join(self.data.take());
        let words = join(self.words.take()).unwrap_or_default();
        let status = self.process.wait()?;
        let name = self.name;
        if !status.success() {
            let last = words.last().map_or("it left no message", String::as_str);
            let last = last.strip_prefix(&format!("{name}: ")).unwrap_or(last);
            match status.code() {
                Some(_) => bail!("{name}: {last}"),
                None => bail!("{name} was killed ({status}); its last words: {last}"),
            }
        }
        let profile = match data {
            Some(Ok(profile)) => profile,
            None | Some(Err(capture::Error::CutOff)) => {
                bail!("{name} ended before it was told to; is it of the same version as wallclock?")
            }
            Some(Err(error)) => return Err(error).context(format!("{name} went astray")),
        };
        Ok(Outcome { profile, words })
    }
}

impl AsFd for Child {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Already waited for, in most cases: then both do nothing.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Reads the child's data as they come, so that it never waits for us.
fn read_data(stdout: ChildStdout) -> JoinHandle<Result<Profile, capture::Error>> {
    thread::spawn(move || {
        let mut stdout = BufReader::with_capacity(1 << 16, stdout);
        let profile = capture::read(&mut stdout);
        // After nonsense, the rest is let go, lest the child fail for want of a reader.
        let _ = std::io::copy(&mut stdout, &mut std::io::sink());
        profile
    })
}

fn read_words(stderr: impl Read) -> Vec<String> {
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
        child.listen();
        assert!(!child.has_hung_up());
        theirs.write_all(b"ready\nfirst 5\n").unwrap();
        child.tell("stop 7");
        drop(theirs);
        // What another test has just forked holds the line until it executes something.
        let deadline = Instant::now() + Duration::from_secs(10);
        while !child.has_hung_up() {
            assert!(Instant::now() < deadline);
            child.listen();
        }
        assert!(child.is_ready());
        assert_eq!(child.first(), Some(5));
    }
}
