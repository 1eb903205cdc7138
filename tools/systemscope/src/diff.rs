//! `systemscope diff`: what changed from one capture to another.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use cli::{CommandLine, Output};
use export::diff::{Shown, write_json, write_svg, write_table};
use profile::diff::diff;

use crate::captures;

/// Shows what changed from one capture to another, and what of it chance may have
/// done.
///
/// Functions are compared by the time in which they were on the stack, in each state,
/// per second of the window. A change is held against what the sum varies by chance;
/// what is beyond that at the level of 99 % comes first.
#[derive(Parser, Debug)]
#[command(name = "diff", after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The capture that was made first (*.scope)
    before: PathBuf,

    /// The capture that it is held against
    after: PathBuf,

    /// Stacks instead of functions
    #[arg(long, conflicts_with = "format")]
    stacks: bool,

    /// How many rows are shown
    #[arg(short = 'n', long = "rows", value_name = "N", default_value_t = 30)]
    rows: usize,

    /// A table; a differential flame graph; or JSON
    #[arg(long, value_enum, default_value = "table")]
    format: Form,

    /// Write to FILE, which appears only once it is whole; .svg and .json say the
    /// format
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    output: Option<PathBuf>,
}

/// How changes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    Table,
    Svg,
    Json,
}

const EXAMPLES: &str = "\
Examples:
  wallclock 1234 -o before.scope; …; wallclock 1234 -o after.scope
  systemscope diff before.scope after.scope
  systemscope diff before.scope after.scope -o diff.svg";

impl Arguments {
    fn form(&self) -> Form {
        let ending = self
            .output
            .as_ref()
            .and_then(|path| path.extension()?.to_str());
        match (self.format, ending) {
            (Form::Table, Some("svg")) => Form::Svg,
            (Form::Table, Some("json")) => Form::Json,
            (form, _) => form,
        }
    }
}

/// The program.
pub(crate) fn run(command_line: &CommandLine) -> ExitCode {
    cli::run(command_line.called(), || {
        let arguments: Arguments = command_line.parse()?;
        let output = Output::new(arguments.output.clone())?;
        let (before, after) = captures::pair(&arguments.before, &arguments.after)?;
        let changes = diff(&before, &after)?;
        let shown = match arguments.stacks {
            true => Shown::Stacks,
            false => Shown::Functions,
        };
        output.write(|writer| match arguments.form() {
            Form::Table => write_table(&before, &after, &changes, shown, arguments.rows, writer),
            Form::Svg => write_svg(&before, &after, writer),
            Form::Json => write_json(&before, &after, &changes, writer),
        })
    })
}
