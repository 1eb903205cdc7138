//! Flag that chooses threads by name.

use clap::Args;
use regex::Regex;

use super::values;

/// Flag that restricts the targets of all other flags to threads by name.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = super::TARGETS)]
pub struct ThreadNameFlags {
    /// Only the targets' threads whose names match this regular expression
    #[arg(
        long = "thread-name", value_name = "REGEX",
        allow_hyphen_values = true, value_parser = values::expression
    )]
    thread_name: Option<Regex>,
}

impl ThreadNameFlags {
    /// Returns the expression that threads' names must match, if one is given.
    #[must_use]
    pub fn expression(&self) -> Option<&Regex> {
        self.thread_name.as_ref()
    }

    /// Returns the description of targets `whom`, restricted by the flag.
    #[must_use]
    pub fn subject(&self, whom: String) -> String {
        match &self.thread_name {
            Some(expression) => format!("{whom}, threads named /{expression}/"),
            None => whom,
        }
    }
}

/// Returns the message that no measured thread has a name that matches the expression.
#[must_use]
pub fn nobody_named(expression: &str) -> String {
    format!(
        "no measured thread has a name that matches `{expression}`; `ps -eLo tid,comm` lists the names"
    )
}
