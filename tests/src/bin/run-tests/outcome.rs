//! One test, run.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use systemscope_tests::Running;
use systemscope_tests::tries::TRIED_AGAIN;

use crate::kernel_log::KernelLog;
use crate::programs::Test;

/// Longer than any test takes on any machine; one that hangs ends here.
const LONGEST: Duration = Duration::from_secs(600);
/// How often a test is run where the kernel kept threads from their CPUs meanwhile.
const TRIES: usize = 3;

/// What came of a test.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) name: String,
    pub(crate) passed: bool,
    pub(crate) took: Duration,
    /// Measurements made again, with the reason of each.
    pub(crate) tried_again: Vec<String>,
    /// All that it said.
    pub(crate) said: String,
}

/// Runs a test, and again if it failed while the kernel, by its own account, kept
/// threads from their CPUs. Why it did that is not asked.
pub(crate) fn of(test: &Test) -> Outcome {
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

/// Runs a test in a process of its own.
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
            // A name that is no test's would pass as no test at all.
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
