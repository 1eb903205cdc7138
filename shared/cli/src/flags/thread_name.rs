//! The flag that chooses threads by their names.

use clap::Args;
use regex::Regex;

use crate::values;

/// Which threads to measure, on top of any other choice.
#[derive(Args, Clone, Debug, Default)]
pub struct ThreadNameFlags {
    /// Only threads in whose name this regular expression is found, of those that
    /// the other flags choose
    #[arg(
        long = "thread-name", value_name = "REGEX",
        allow_hyphen_values = true, value_parser = values::expression
    )]
    thread_name: Option<Regex>,
}

impl ThreadNameFlags {
    /// What is to be found in their names, if not all are meant.
    #[must_use]
    pub fn expression(&self) -> Option<&Regex> {
        self.thread_name.as_ref()
    }

    /// Whom, in words, of those that other flags choose.
    #[must_use]
    pub fn subject(&self, whom: String) -> String {
        match &self.thread_name {
            Some(expression) => format!("{whom}, threads named /{expression}/"),
            None => whom,
        }
    }
}

/// That no thread has a name in which the expression is found.
#[must_use]
pub fn nobody_named(expression: &str) -> String {
    format!(
        "no thread was seen in whose name `{expression}` is found; `ps -eLo tid,comm` lists their names"
    )
}
