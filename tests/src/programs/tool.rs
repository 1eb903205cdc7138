//! Tools of this project, run as users or wallclock run them.

use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;
use rustix::time::{ClockId, clock_gettime};

use crate::{Control, Finished, Folded, Running, binary};

/// Longest time for a tool to start or to end. It is no promise about the tool: it ends a test that
/// would hang.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Text that a tool prints when the window opens.
pub const MEASURING: &str = "Hit Ctrl-C to end.";

/// Program that contains all tools.
pub const EVERYTHING: &str = "systemscope";

/// All tools.
pub const TOOLS: [&str; 5] = [
    "oncputime",
    "offcputime",
    "offwaketime",
    "cpudist",
    "wallclock",
];

/// Command line of a tool, under construction.
#[derive(Debug)]
pub struct Tool {
    command: Command,
}

impl Tool {
    /// Returns a tool by name, from the build under test.
    pub fn new(name: &str) -> Tool {
        Tool::at(&binary(name))
    }

    /// Returns a tool by name; oncputime samples at 999 Hz. At 49 Hz all samples of a program that
    /// runs little can fall into its pauses.
    pub fn attentive(name: &str) -> Tool {
        let tool = Tool::new(name);
        if name == "oncputime" {
            tool.args("-F 999")
        } else {
            tool
        }
    }

    /// Returns a program by path: a tool, or a program that starts a tool.
    pub fn at(path: &Path) -> Tool {
        let mut command = Command::new(path);
        command.stdin(Stdio::null());
        Tool { command }
    }

    /// Adds one argument.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Tool {
        self.command.arg(argument);
        self
    }

    /// Adds arguments, split at spaces.
    pub fn args(mut self, arguments: &str) -> Tool {
        self.command.args(arguments.split_whitespace());
        self
    }

    /// Adds `-p PID`.
    pub fn pid(self, pid: u32) -> Tool {
        self.arg("-p").arg(pid.to_string())
    }

    /// Sets the working directory.
    pub fn in_folder(mut self, folder: &Path) -> Tool {
        self.command.current_dir(folder);
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Tool {
        self.command.env(name, value);
        self
    }

    /// Starts the tool, and collects stdout and stderr.
    pub fn start(self) -> Running {
        Running::spawn(self.command, true)
    }

    /// Starts the tool with a file, a device or a pipe as its stdout.
    pub fn start_into(mut self, stdout: impl Into<Stdio>) -> Running {
        self.command.stdout(stdout);
        Running::spawn(self.command, false)
    }

    /// Starts the tool with a terminal as its stderr, and collects stdout and stderr.
    pub fn start_on_a_terminal(self) -> Running {
        Running::spawn_on_a_terminal(self.command)
    }

    /// Starts the tool with a control connection, as wallclock starts its children.
    pub fn start_controlled(mut self) -> (Running, Control) {
        let control = Control::for_command(&mut self.command);
        let running = Running::spawn(self.command, true);
        (running, control)
    }

    /// Starts the tool with a file as its stdout, as a shell's `>` does.
    pub fn start_into_file(self, path: &Path) -> Running {
        let file = File::options().write(true).open(path);
        self.start_into(file.unwrap_or_else(|error| panic!("open {}: {error}", path.display())))
    }

    /// Runs the tool to its end.
    pub fn run(self) -> Finished {
        self.start().finish_within(PATIENCE)
    }

    /// Runs the tool with `seconds` as its duration argument, and parses its output.
    pub fn folded(self, seconds: f32) -> Folded {
        let finished = self.arg(seconds.to_string()).run().succeeded();
        Folded::parse(&finished.stdout)
    }

    /// Runs the tool with `--per-thread` for `seconds`, and parses its output.
    pub fn folded_per_thread(self, seconds: f32) -> Folded {
        let finished = self
            .arg("--per-thread")
            .arg(seconds.to_string())
            .run()
            .succeeded();
        Folded::parse_per_thread(&finished.stdout)
    }

    /// Starts the tool, and waits until it prints that the window is open.
    pub fn start_measuring(self) -> Running {
        let mut running = self.start();
        running.wait_until_said(MEASURING, PATIENCE);
        running
    }

    /// Runs the tool, and sends it `signal` after the window has been open for `time`.
    pub fn run_until(self, signal: Signal, time: Duration) -> Finished {
        let running = self.start_measuring();
        sleep(time);
        running.signal(signal);
        running.finish_within(PATIENCE)
    }
}

/// Returns the current CLOCK_MONOTONIC time in ns. Window times are on this clock.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// Returns the number of CPUs online.
pub fn cpus_online() -> usize {
    // SAFETY: sysconf only reads.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    usize::try_from(count).expect("the number of CPUs")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::*;

    #[test]
    fn no_tool_is_left_out() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools");
        let entries = fs::read_dir(folder).unwrap();
        let folders: BTreeSet<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let all = TOOLS.into_iter().chain([EVERYTHING]);
        assert_eq!(folders, all.map(str::to_owned).collect());
    }
}
