//! `systemscope diff` shows what changed from one capture to another.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use cli::{CommandLine, Output};
use export::diff::{Shown, write_json, write_svg, write_table};
use profile::diff::diff;

use crate::captures;

/// Show what changed from one capture to another, and which changes may be chance.
///
/// diff compares functions by their time on the stack in each state, per second of the window. It
/// compares each change with the random variation of the sum. Changes beyond that variation at the
/// level of 99 % come first.
#[derive(Parser, Debug)]
#[command(name = "diff", after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// First capture (*.scope)
    before: PathBuf,

    /// Second capture, which is compared with the first
    after: PathBuf,

    /// Compare stacks instead of functions
    #[arg(long, help_heading = OUTPUT, conflicts_with = "format")]
    stacks: bool,

    /// Maximum rows of the table
    #[arg(short = 'n', help_heading = OUTPUT, long = "rows", value_name = "N", default_value_t = 30)]
    rows: usize,

    /// Write a table, a page (html), a differential flame graph (svg), or JSON
    #[arg(long, help_heading = OUTPUT, value_enum, default_value = "table")]
    format: Form,

    /// Write to FILE; the endings .html, .svg and .json choose the format
    #[arg(short = 'o', long = "output", value_name = "FILE", help_heading = OUTPUT)]
    output: Option<PathBuf>,

    #[command(flatten)]
    help: cli::HelpFlag,
}

/// Heading of the flags that choose the output.
const OUTPUT: &str = "Output";

/// Format of the changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    Table,
    Html,
    Svg,
    Json,
}

const EXAMPLES: &str = "\
Examples:
  wallclock 1234 -o before.scope; …; wallclock 1234 -o after.scope
  systemscope diff before.scope after.scope
  systemscope diff before.scope after.scope -o diff.html
  systemscope diff before.scope after.scope -o diff.svg";

impl Arguments {
    fn form(&self) -> Form {
        let ending = self
            .output
            .as_ref()
            .and_then(|path| path.extension()?.to_str());
        match (self.format, ending) {
            (Form::Table, Some("html")) => Form::Html,
            (Form::Table, Some("svg")) => Form::Svg,
            (Form::Table, Some("json")) => Form::Json,
            (form, _) => form,
        }
    }
}

/// Runs `systemscope diff` from its command line to its exit status.
pub(crate) fn run(command_line: &CommandLine) -> ExitCode {
    cli::run(command_line.called(), || {
        let arguments: Arguments = command_line.parse()?;
        let output = Output::new(arguments.output.clone())?;
        let (before, after) = captures::pair(&arguments.before, &arguments.after)?;
        let changes = diff(&before, &after)?;
        let shown = if arguments.stacks {
            Shown::Stacks
        } else {
            Shown::Functions
        };
        output.write(|writer| match arguments.form() {
            Form::Table => write_table(&before, &after, &changes, shown, arguments.rows, writer),
            Form::Html => page::write_comparison(&before, &after, &changes, writer),
            Form::Svg => write_svg(&before, &after, writer),
            Form::Json => write_json(&before, &after, &changes, writer),
        })
    })
}
