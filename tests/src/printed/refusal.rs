//! Checks of how a tool refuses a request that it cannot fulfil.

use std::fs;

use crate::{Finished, Tool};

/// Tools that show stacks.
pub const STACKING: [&str; 4] = ["oncputime", "offcputime", "offwaketime", "wallclock"];

/// Tools that print folded stacks on stdout.
pub const FOLDING: [&str; 3] = ["oncputime", "offcputime", "offwaketime"];

/// Exit status of a wrong command line.
pub const WRONG_COMMAND_LINE: i32 = 2;

/// Exit status of any other failure.
pub const FAILED: i32 = 1;

/// Returns the lowest number that cannot be a PID or TID.
///
/// # Panics
///
/// Panics if /proc/sys/kernel/pid_max cannot be read.
pub fn nobody() -> String {
    let limit = fs::read_to_string("/proc/sys/kernel/pid_max").expect("the limit of IDs");
    limit.trim().to_owned()
}

/// Asserts that a tool refused. The tool must print one line on stderr with all of `words`, print
/// no data, and exit with one of `codes`.
#[track_caller]
pub fn assert_refused(tool: &str, finished: &Finished, codes: &[i32], words: &[&str]) {
    let stderr = &finished.stderr;
    assert_eq!(
        stderr.lines().count(),
        1,
        "{tool} did not print exactly one line:\n{stderr}"
    );
    assert!(
        stderr.ends_with('\n'),
        "{tool} did not print a whole line: {stderr:?}"
    );
    assert!(
        stderr.starts_with(&format!("{tool}: ")),
        "{tool} does not begin with its name: {stderr}"
    );
    for word in words {
        assert!(
            stderr.contains(word),
            "{tool} does not name {word:?}: {stderr}"
        );
    }
    assert!(
        finished.code.is_some_and(|code| codes.contains(&code)),
        "{tool} ended with {:?} or signal {:?}, not {codes:?}: {stderr}",
        finished.code,
        finished.signal
    );
    assert!(
        finished.stdout.is_empty(),
        "{tool} printed data: {}",
        finished.stdout.escape_ascii()
    );
}

/// Asserts that a tool measured and then ended with an error. The last line on stderr is the error
/// and contains all of `words`. Other lines may come before it. The exit status is [`FAILED`].
#[track_caller]
pub fn assert_ended_with_error(tool: &str, finished: &Finished, words: &[&str]) {
    let last = finished.stderr.lines().last().unwrap_or_default();
    assert!(
        last.starts_with(&format!("{tool}: ")),
        "{tool} does not end with its error:\n{}",
        finished.stderr
    );
    for word in words {
        assert!(
            last.contains(word),
            "{tool} does not name {word:?}:\n{}",
            finished.stderr
        );
    }
    assert_eq!(
        (finished.code, finished.signal),
        (Some(FAILED), None),
        "{}",
        finished.stderr
    );
    assert!(!finished.stderr.contains("panicked"), "{}", finished.stderr);
}

/// Returns arguments with which a tool measures for one second. The target's ID must follow them.
pub fn a_second_of(tool: &str) -> &'static str {
    match tool {
        "wallclock" => "-d 1",
        "cpudist" => "1 1 -p",
        _ => "--duration 1 -p",
    }
}

/// Builds a command that measures a target for one second.
pub fn on_target(tool: &str, target: &str) -> Tool {
    Tool::new(tool).args(a_second_of(tool)).arg(target)
}
