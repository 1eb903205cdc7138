//! The command line. Errors of clap, which have several lines, become one line.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};

use clap::error::ErrorKind;

use crate::error::{Ending, one_line, usage};

/// A program's name and arguments.
pub struct CommandLine {
    called: String,
    arguments: Vec<OsString>,
}

impl CommandLine {
    /// Returns the command line of this process, under the program's name.
    #[must_use]
    pub fn of_process(program: &str) -> CommandLine {
        CommandLine::new(program, env::args_os().skip(1))
    }

    /// Returns a command line under the name of a program, or of a program and its subcommand.
    #[must_use]
    pub fn new(called: &str, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        CommandLine {
            called: called.to_owned(),
            arguments: arguments.into_iter().map(Into::into).collect(),
        }
    }

    /// Returns the program's name in its messages.
    #[must_use]
    pub fn called(&self) -> &str {
        &self.called
    }

    /// Parses the arguments.
    ///
    /// `--help` and `--version` print on stdout. The error that is then returned makes
    /// [`run`](crate::run) exit with status 0.
    ///
    /// # Errors
    /// A usage error for a wrong command line: one line with the value and the remedy.
    pub fn parse<A: clap::Parser>(&self) -> anyhow::Result<A> {
        let mut matches = self.matches(A::command())?;
        A::from_arg_matches_mut(&mut matches).map_err(|error| to_error(&error))
    }

    /// Parses the arguments for a command that has no type.
    ///
    /// # Errors
    /// The same as for [`CommandLine::parse`].
    pub fn matches(&self, command: clap::Command) -> anyhow::Result<clap::ArgMatches> {
        let called = OsString::from(&self.called);
        let all = std::iter::once(&called).chain(&self.arguments);
        let matches = command.bin_name(&self.called).try_get_matches_from(all);
        matches.map_err(|error| to_error(&error))
    }
}

/// Prints help or the version, or turns clap's error into a usage error.
fn to_error(error: &clap::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => print(error),
        kind => usage(to_one_line(kind, &error.render().to_string())),
    }
}

/// Prints help or version, in colour where stdout is a terminal.
fn print(error: &clap::Error) -> anyhow::Error {
    match error.print().and_then(|()| io::stdout().flush()) {
        Ok(()) => Ending::Finished.into(),
        Err(_) => Ending::ClosedPipe.into(),
    }
}

/// Returns clap's message without its usage block, with the remedy at the end.
fn to_one_line(kind: ErrorKind, rendered: &str) -> String {
    let message = rendered.strip_prefix("error: ").unwrap_or(rendered);
    let body = message
        .split("\n\nUsage:")
        .next()
        .and_then(|text| text.split("\n\nFor more information").next())
        .unwrap_or(message);
    let mut text = String::new();
    for line in body.lines().map(one_line).filter(|line| !line.is_empty()) {
        if text.ends_with(':') {
            text.push(' ');
        } else if !text.is_empty() {
            text.push_str("; ");
        }
        text.push_str(&line);
    }
    // The value parsers of this crate name the remedy, and so do clap's tips.
    if kind != ErrorKind::ValueValidation && !text.contains("; tip: ") {
        text.push_str("; see --help");
    }
    text
}

/// Parses the arguments in one line, for tests.
#[cfg(test)]
pub(crate) fn parse_line<A: clap::Parser>(line: &str) -> anyhow::Result<A> {
    CommandLine::new("tool", line.split_whitespace()).parse()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use clap::Parser;

    use super::*;

    /// A tool.
    #[derive(Debug, Parser)]
    #[command(version)]
    struct Arguments {
        /// Processes.
        #[arg(short, long, value_delimiter = ',', allow_negative_numbers = true,
              value_parser = crate::values::process_id)]
        pid: Vec<u32>,
        /// Mandatory.
        file: String,
        /// One.
        #[arg(long)]
        one: bool,
        /// Other.
        #[arg(long, conflicts_with = "one")]
        other: bool,
    }

    fn error(arguments: &[&str]) -> String {
        let line = CommandLine::new("tool", arguments);
        let error = line.parse::<Arguments>().unwrap_err();
        assert!(matches!(
            error.downcast_ref::<Ending>(),
            Some(Ending::Usage(_))
        ));
        error.to_string()
    }

    #[test]
    fn wrong_value_names_value_flag_and_remedy() {
        for value in ["abc", "-1", "0", "4194305"] {
            assert_eq!(
                error(&["f", "-p", value]),
                format!(
                    "invalid value '{value}' for '--pid <PID>': process IDs are numbers \
                     from 1 to 4194304; `ps -e` lists those in use"
                )
            );
        }
    }

    #[test]
    fn other_mistakes_point_to_help_or_carry_a_tip() {
        assert_eq!(
            error(&[]),
            "the following required arguments were not provided: <FILE>; see --help"
        );
        assert_eq!(
            error(&["f", "--pidd", "1"]),
            "unexpected argument '--pidd' found; tip: a similar argument exists: '--pid'"
        );
        assert_eq!(
            error(&["f", "--one", "--other"]),
            "the argument '--one' cannot be used with '--other'; see --help"
        );
        assert!(error(&["f", "-p"]).ends_with("but none was supplied; see --help"));
    }

    #[test]
    fn every_error_is_one_line() {
        for arguments in [&["a", "b\nc"][..], &["f", "-p", "1\n2"], &["f", "-z"]] {
            assert!(!error(arguments).contains('\n'));
        }
    }
}
