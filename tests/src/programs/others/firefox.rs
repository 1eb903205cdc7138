//! Firefox Profiler's program for the command line, which reads files as the profiler does.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::Running;
use crate::programs::tool::PATIENCE;
use crate::programs::workload::scratch;

/// The program that `make test` installs from `tests/viewers/package.json`.
const PROGRAM: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/viewers/node_modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js"
);

/// A file that Firefox Profiler has open.
#[derive(Debug)]
pub struct FirefoxProfiler {
    /// The process that holds the file and answers the commands.
    _daemon: Running,
    sessions: TempDir,
}

impl FirefoxProfiler {
    /// Opens a file.
    ///
    /// # Panics
    ///
    /// Panics if the program is not installed or does not open the file.
    #[must_use]
    pub fn open(file: &Path) -> FirefoxProfiler {
        assert!(
            fs::exists(PROGRAM).is_ok_and(|exists| exists),
            "no {PROGRAM}: `make test` installs it"
        );
        let sessions = scratch();
        // `profiler-cli load` starts this process too, but waits half a second for it at most.
        let mut command = profiler_cli(&sessions);
        command
            .arg("--daemon")
            .arg(file)
            .args(["--session", "test"]);
        let profiler = FirefoxProfiler {
            _daemon: Running::spawn(command, false),
            sessions,
        };
        // A command that comes before the process listens removes the session.
        let socket = profiler.sessions.path().join("test.sock");
        let begun = Instant::now();
        loop {
            let answer = if socket.exists() {
                profiler.try_ask("profile info")
            } else {
                Err("it does not start".to_owned())
            };
            match answer {
                Ok(_) => return profiler,
                Err(told) => assert!(begun.elapsed() < PATIENCE, "{}: {told}", file.display()),
            }
            sleep(Duration::from_millis(100));
        }
    }

    /// Runs a command, and returns its answer.
    ///
    /// # Panics
    ///
    /// Panics if the command fails.
    #[must_use]
    pub fn ask(&self, command: &str) -> Value {
        let answer = self.try_ask(command);
        answer.unwrap_or_else(|told| panic!("profiler-cli {command}: {told}"))
    }

    fn try_ask(&self, command: &str) -> Result<Value, String> {
        let mut program = profiler_cli(&self.sessions);
        let words = command.split(' ').chain(["--json", "--session", "test"]);
        let output = program.args(words).output().expect("Node.js");
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
    }
}

fn profiler_cli(sessions: &TempDir) -> Command {
    let mut command = Command::new("node");
    command.arg(PROGRAM);
    command.env("PROFILER_CLI_SESSION_DIR", sessions.path());
    command
}
