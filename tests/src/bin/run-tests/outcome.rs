//! Runs a single test.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use systemscope_tests::Running;
use systemscope_tests::tries::TRIED_AGAIN;

use crate::kernel_log::KernelLog;
use crate::programs::Test;

/// Time limit of a test, more than any test takes on any machine. `run-tests` kills a test that
/// takes longer.
const LONGEST: Duration = Duration::from_secs(600);
/// Maximum runs of a test during which the kernel starved its threads.
const TRIES: usize = 3;

/// Result of a test.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) name: String,
    pub(crate) passed: bool,
    pub(crate) took: Duration,
    /// Reasons for repeated measurements.
    pub(crate) tried_again: Vec<String>,
    /// Standard output, then standard error.
    pub(crate) said: String,
}

/// Runs a test. Runs the test again if it failed and the kernel logged meanwhile that it starved
/// threads, whatever the cause.
pub(crate) fn run(test: &Test) -> Outcome {
    let mut tried_again = Vec::new();
    let mut outcome = loop {
        let mut log = KernelLog::from_now();
        let outcome = once(test);
        match log.stall() {
            Some(message) if !outcome.passed && tried_again.len() + 1 < TRIES => {
                tried_again.push(format!("all of the test, as the kernel says: {message}"));
            }
            _ => break outcome,
        }
    };
    outcome.tried_again.splice(..0, tried_again);
    outcome
}

/// Runs a test once, in a process of its own.
fn once(test: &Test) -> Outcome {
    let mut command = Command::new(&test.executable);
    command
        .args([
            "--exact",
            "--nocapture",
            "--include-ignored",
            "--test-threads=1",
            &test.path,
        ])
        .current_dir(&test.folder)
        .stdin(Stdio::null());
    let begun = Instant::now();
    let finished = Running::spawn(command, true).try_finish_within(LONGEST);
    let took = begun.elapsed();
    let (passed, stdout, stderr) = match finished {
        Ok(finished) => {
            let stdout = String::from_utf8_lossy(&finished.stdout).into_owned();
            // A test program succeeds without running a test if no test has the given name.
            let ran = stdout.contains("test result: ok. 1 passed");
            (finished.code == Some(0) && ran, stdout, finished.stderr)
        }
        Err(stderr) => (false, format!("it did not end in {LONGEST:?}\n"), stderr),
    };
    let tried_again = stdout
        .lines()
        .filter_map(|line| line.split_once(TRIED_AGAIN))
        .map(|(_, why)| why.to_owned());
    Outcome {
        passed,
        took,
        tried_again: tried_again.collect(),
        said: stdout + &stderr,
        name: test.name.clone(),
    }
}
