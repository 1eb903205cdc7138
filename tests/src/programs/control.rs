//! Parent's end of `--control-fd`. It receives when the tool is attached, sets the window, and
//! receives what the tool lost.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::programs::tool::PATIENCE;

/// File descriptor of the tool's end.
pub const CONTROL_FD: i32 = 3;

/// Control connection to one tool.
#[derive(Debug)]
pub struct Control {
    lines: BufReader<UnixStream>,
}

impl Control {
    /// Gives `command` the tool's end as file descriptor 3.
    pub fn for_command(command: &mut Command) -> Control {
        let (ours, theirs) = UnixStream::pair().expect("a socket pair");
        ours.set_read_timeout(Some(PATIENCE)).unwrap();
        let theirs = OwnedFd::from(theirs);
        command.arg("--control-fd").arg(CONTROL_FD.to_string());
        let give = move || {
            // SAFETY: after a fork it is safe to duplicate descriptors and to set their flags. `theirs`
            // stays open as long as the command, which owns this closure.
            let result = unsafe {
                if theirs.as_raw_fd() == CONTROL_FD {
                    libc::fcntl(CONTROL_FD, libc::F_SETFD, 0)
                } else {
                    libc::dup2(theirs.as_raw_fd(), CONTROL_FD)
                }
            };
            if result < 0 {
                Err(std::io::Error::last_os_error())
            } else {
                Ok(())
            }
        };
        // SAFETY: `give` only makes system calls that are safe after a fork.
        unsafe { command.pre_exec(give) };
        Control {
            lines: BufReader::new(ours),
        }
    }

    /// Waits until the tool is attached.
    ///
    /// # Errors
    ///
    /// Fails if the tool is gone, or sends another message.
    pub fn ready(&mut self) -> io::Result<()> {
        match self.line()?.as_str() {
            "ready" => Ok(()),
            line => Err(unexpected(line)),
        }
    }

    /// Opens the window at a CLOCK_MONOTONIC time in ns.
    ///
    /// # Errors
    ///
    /// Fails if the tool is gone.
    pub fn start(&mut self, at_ns: u64) -> io::Result<()> {
        writeln!(self.lines.get_mut(), "start {at_ns}")
    }

    /// Closes the window at a CLOCK_MONOTONIC time in ns.
    ///
    /// # Errors
    ///
    /// Fails if the tool is gone.
    pub fn stop(&mut self, at_ns: u64) -> io::Result<()> {
        writeln!(self.lines.get_mut(), "stop {at_ns}")
    }

    /// Reads the tool's last message, and returns its counts of losses by name.
    ///
    /// # Errors
    ///
    /// Fails if the tool is gone, or sends another message.
    pub fn lost(&mut self) -> io::Result<BTreeMap<String, u64>> {
        let mut line = self.line()?;
        // Earlier messages can say that the window is open, or that all targets have ended.
        while line == "open" || line == "gone" {
            line = self.line()?;
        }
        let counts = line
            .strip_prefix("lost ")
            .ok_or_else(|| unexpected(&line))?;
        let pair = |field: &str| {
            let (name, count) = field.split_once('=')?;
            Some((name.to_owned(), count.parse().ok()?))
        };
        counts
            .split(' ')
            .map(|field| pair(field).ok_or_else(|| unexpected(&line)))
            .collect()
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.lines.read_line(&mut line)?;
        if line.pop() == Some('\n') {
            Ok(line)
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }
}

fn unexpected(line: &str) -> io::Error {
    io::Error::other(format!("the tool said {line:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_talks_on_descriptor_three() {
        let script = "echo ready >&3; read start <&3; echo \"lost said=1 events=$(echo $start | tr -dc 0-9)\" >&3";
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let mut control = Control::for_command(&mut command);
        let mut child = command.spawn().unwrap();
        drop(command);
        control.ready().unwrap();
        control.start(42).unwrap();
        let lost = control.lost().unwrap();
        assert_eq!((lost["said"], lost["events"]), (1, 42));
        assert!(control.ready().is_err(), "the tool has ended");
        assert!(child.wait().unwrap().success());
    }
}
