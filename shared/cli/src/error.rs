//! Errors and exit statuses: one line on stderr, status 1 for a failure and 2 for a wrong command
//! line.

use std::fmt::Display;
use std::io::{self, Write};
use std::panic;
use std::process::{self, ExitCode, Termination};

use profile::text::clean;
use thiserror::Error;

use crate::memory;

/// Exit status for a failure.
const FAILED: u8 = 1;
/// Exit status for a wrong command line.
const MISUSED: u8 = 2;

/// Endings of a run other than a plain failure.
#[derive(Debug, Error)]
pub(crate) enum Ending {
    /// The command line is wrong.
    #[error("{0}")]
    Usage(String),
    /// The command to measure cannot be run. The status is the status of a shell in this case.
    #[error("{message}")]
    NotRun {
        /// Exit status, 126 or 127.
        status: u8,
        /// Error text: the command and the reason.
        message: String,
    },
    /// The text of `--help` or `--version` has been printed.
    #[error("finished")]
    Finished,
    /// The controlling parent is gone, so nobody reads the output.
    #[error("the controlling process ended")]
    Orphaned,
    /// The reader of standard output is gone.
    #[error(
        "standard output was closed before everything was written; keep its reader running until the end"
    )]
    ClosedPipe,
}

/// Runs a tool's body and turns its outcome into the exit status.
///
/// An error becomes exactly one line on stderr, `tool: message: cause`. The exit status is then 1,
/// or 2 for a wrong command line (see [`usage`]). A body that runs a command returns the command's
/// exit status.
pub fn run<Status: Termination>(
    tool: &str,
    body: impl FnOnce() -> anyhow::Result<Status>,
) -> ExitCode {
    abort_on_panic();
    memory::return_large_blocks();
    let error = match body() {
        Ok(status) => return status.report(),
        Err(error) => error,
    };
    ExitCode::from(report(tool, &error))
}

/// Makes the process end at the first panic in any thread. Otherwise a thread could continue
/// without another thread that it relies on.
fn abort_on_panic() {
    let default_hook = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        default_hook(panic);
        process::abort();
    }));
}

/// Prints an error on stderr and returns its exit status.
pub(crate) fn report(tool: &str, error: &anyhow::Error) -> u8 {
    let (status, line) = verdict(tool, error);
    if let Some(line) = line {
        say(line);
    }
    status
}

/// Writes a line to stderr. A target may choose parts of the line, such as the name of a cgroup, so
/// this function [cleans](clean) the line. All lines on stderr pass through this function.
pub fn say(line: impl Display) {
    // If stderr is closed, the line is lost.
    let _ = writeln!(io::stderr(), "{}", clean(&line.to_string()));
}

/// Returns an error for a wrong command line, with which [`run`] exits with status 2.
pub fn usage(message: impl Into<String>) -> anyhow::Error {
    Ending::Usage(message.into()).into()
}

/// Returns the system's description of an I/O error, without the error number.
#[must_use]
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// Returns the exit status of an error, and the line that reports it.
fn verdict(tool: &str, error: &anyhow::Error) -> (u8, Option<String>) {
    match error.downcast_ref::<Ending>() {
        Some(Ending::Finished) => (0, None),
        Some(Ending::Orphaned) => (FAILED, None),
        Some(Ending::Usage(_)) => (MISUSED, Some(line(tool, error))),
        Some(Ending::NotRun { status, .. }) => (*status, Some(line(tool, error))),
        Some(Ending::ClosedPipe) | None => (FAILED, Some(line(tool, error))),
    }
}

/// Returns `tool: message: cause` on one line.
fn line(tool: &str, error: &anyhow::Error) -> String {
    let mut text = tool.to_owned();
    for cause in error.chain() {
        let cause = one_line(&cause.to_string());
        // Many error types repeat their source at the end of their message.
        if !cause.is_empty() && !text.ends_with(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

/// Returns the text with each run of white space squeezed to one space.
pub(crate) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use anyhow::{Context, anyhow};

    use super::*;

    #[test]
    fn failure_is_one_line_with_its_causes_and_status_1() {
        let error = Err::<(), _>(anyhow!("no such\nfile"))
            .context("cannot open `x`\n")
            .unwrap_err();
        assert_eq!(
            verdict("tool", &error),
            (1, Some("tool: cannot open `x`: no such file".into()))
        );
    }

    #[test]
    fn cause_already_told_is_not_repeated() {
        let error = anyhow!("disk full").context("cannot write: disk full");
        assert_eq!(line("tool", &error), "tool: cannot write: disk full");
    }

    #[test]
    fn usage_is_status_2_under_any_context() {
        let error = usage("-m is too large").context("flags");
        assert_eq!(
            verdict("tool", &error),
            (2, Some("tool: flags: -m is too large".into()))
        );
    }
}
