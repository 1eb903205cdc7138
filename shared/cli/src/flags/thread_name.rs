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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::parse::parse_line;

    #[derive(Debug, Parser)]
    struct Arguments {
        #[command(flatten)]
        names: ThreadNameFlags,
    }

    #[test]
    fn an_expression_is_taken_and_told() {
        let names = |line: &str| parse_line::<Arguments>(line).map(|arguments| arguments.names);
        let pool = names("--thread-name ^pool-[0-9]").unwrap();
        assert!(pool.expression().unwrap().is_match("pool-7"));
        let told = pool.subject("PID 7".to_owned());
        assert_eq!(told, "PID 7, threads named /^pool-[0-9]/");
        assert!(names("--thread-name -7$").unwrap().expression().is_some());
        let nobody = nobody_named("^pool-[0-9]");
        assert!(
            nobody.contains("whose name `^pool-[0-9]` is found"),
            "{nobody}"
        );
        let all = names("").unwrap();
        assert!(all.expression().is_none());
        assert_eq!(all.subject("all threads".to_owned()), "all threads");
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        let refused = parse_line::<Arguments>("--thread-name a(b").unwrap_err();
        let told = refused.to_string();
        assert!(
            told.contains("--thread-name") && told.contains("unclosed group"),
            "{told}"
        );
    }
}
