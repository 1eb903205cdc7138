//! Programs with known addresses. Each program prints some addresses and then waits.

#![allow(dead_code)] // Each test program uses some of the functions.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use process::Process;
use symbolize::Frame;
use symbolize::{Location, Symbolizer};
use tempfile::TempDir;

/// Folder in which a test builds programs.
pub(crate) struct Workshop(pub(crate) TempDir);

impl Workshop {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Builds a program from source.
    pub(crate) fn build(
        &self,
        compiler: &str,
        source: &str,
        name: &str,
        flags: &[&str],
    ) -> PathBuf {
        let suffix = match compiler {
            "rustc" => "rs",
            "g++" => "cc",
            _ => "c",
        };
        let path = self.path(&format!("{name}.{suffix}"));
        std::fs::write(&path, source).unwrap();
        let program = self.path(name);
        run(Command::new(compiler)
            .args(flags)
            .arg("-o")
            .arg(&program)
            .arg(&path));
        program
    }
}

/// Runs a command, and asserts that it succeeds.
pub(crate) fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {errors}");
}

/// Program that has printed its addresses, and waits to be killed.
pub(crate) struct Running {
    pub(crate) child: Child,
    /// PID of the program. It differs from the child's if the child started the program.
    pub(crate) pid: u32,
    pub(crate) addresses: Vec<u64>,
}

impl Running {
    pub(crate) fn start(program: &Path) -> Self {
        Self::spawn(&mut Command::new(program))
    }

    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let stdout = child.stdout.as_mut().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let address = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
        let addresses = line.split_whitespace().map(address).collect();
        let pid = child.id();
        Self {
            child,
            pid,
            addresses,
        }
    }

    pub(crate) fn process(&self) -> Process {
        Process {
            pid: self.pid,
            instance: 1,
        }
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Locates the printed addresses.
    pub(crate) fn locate(&self, symbolizer: &mut Symbolizer) -> Vec<Location> {
        let locate = |address: &u64| symbolizer.locate(self.process(), &[*address], true)[0];
        self.addresses.iter().map(locate).collect()
    }

    /// Returns the names of the printed addresses.
    pub(crate) fn names(&self, symbolizer: &mut Symbolizer) -> Vec<String> {
        let located = self.locate(symbolizer);
        names(symbolizer, &located)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns the names of locations, in the order of the locations.
pub(crate) fn names(symbolizer: &mut Symbolizer, located: &[Location]) -> Vec<String> {
    symbolizer.resolve(located.iter().copied());
    let name = |frame: &Frame| frame.name.to_string();
    symbolizer.frames(located).iter().rev().map(name).collect()
}

/// Returns a symbolizer that searches for debug files only in these directories.
pub(crate) fn symbolizer(debug_directories: &[&Path]) -> Symbolizer {
    let directories = debug_directories.iter().map(|path| path.to_path_buf());
    Symbolizer::with_debug_directories(directories.collect())
}
