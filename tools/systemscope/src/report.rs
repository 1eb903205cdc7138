//! `systemscope report` makes wallclock's report of captures: tables, or a page.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use clap::Parser;
use cli::{CommandLine, Output};
use export::Format;
use page::Html;
use profile::diff::diff;
use profile::join::{Joined, are_of_one_window, join};
use profile::merge::{Merged, merge};
use profile::{Profile, Unit};
use report::Run;
use report::overview::{Look, explanation};
use wallclock::Limits;

use crate::captures::CaptureFlags;

/// Print wallclock's report from captures: what held a program up, and where its time went.
///
/// With -o FILE.html the report is a page for a browser. Of two captures of different windows the
/// page shows what changed from the first to the second.
#[derive(Parser, Debug)]
#[command(name = "report", after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    captures: CaptureFlags,

    /// Write to FILE; the ending .html makes it a page
    #[arg(
        short = 'o',
        long = "output",
        value_name = "FILE",
        help_heading = "Output"
    )]
    output: Option<PathBuf>,

    /// Explain the lines and columns of reports, and exit
    #[arg(long, exclusive = true, help_heading = "Output")]
    explain: bool,

    /// Also print details on sampling and losses
    #[arg(short = 'v', long, help_heading = "Output")]
    verbose: bool,

    /// Maximum processes listed, the busiest first
    ///
    /// Their ancestors are listed as well. All other processes are one row.
    #[arg(long, help_heading = "Output", value_name = "N", default_value_t = Limits::default().processes)]
    processes: usize,

    /// Maximum processes with a table of threads, the busiest first
    #[arg(long, help_heading = "Output", value_name = "N", default_value_t = Limits::default().tables)]
    tables: usize,

    #[command(flatten)]
    help: cli::HelpFlag,
}

const EXAMPLES: &str = "\
Examples:
  systemscope report run.scope              # made by wallclock -o run.scope
  systemscope report run.scope -o run.html  # a page for a browser
  systemscope report old.scope new.scope -o change.html
  systemscope report --tables 20 run.scope  # the threads of up to 20 processes
  systemscope report on.scope off.scope     # made by oncputime and offcputime --states
                                            # at the same time";

/// Runs `systemscope report` from its command line to its exit status.
pub(crate) fn run(command_line: &CommandLine) -> ExitCode {
    cli::run(command_line.called(), || {
        let Arguments {
            captures,
            output: file,
            explain,
            verbose,
            processes,
            tables,
            help: _,
        } = command_line.parse()?;
        let is_page = (file.as_deref())
            .and_then(cli::format_of_file)
            .is_some_and(|format| format.name() == Html.name());
        let goes_to_terminal = file.is_none();
        let output = Output::new(file)?;
        if is_page {
            return write_page(&captures, output);
        }
        if explain {
            return output.write(|writer| writer.write_all(explanation().as_bytes()));
        }
        let merged = accounted(captures.joined()?)?;
        let run = Run::of(&merged);
        let limits = Limits { processes, tables };
        // The capture has the command lines of processes. This command read none before.
        let before = BTreeMap::new();
        let rest = "--tables N lists those of N processes";
        let look = if goes_to_terminal {
            cli::report_look(&std::io::stdout())
        } else {
            Look::default()
        };
        let look = look.with_details(verbose);
        output.write(|writer| {
            wallclock::write_tables(&run, &merged, &before, limits, look, rest, writer)
        })
    })
}

/// Writes the page of captures of one window, or the page that compares two captures.
fn write_page(captures: &CaptureFlags, output: Output) -> anyhow::Result<()> {
    if captures.captures.len() != 2 {
        let profile = captures.joined()?.into_profile();
        return output.write(|writer| page::write(&profile, writer));
    }
    let files = captures.files()?;
    let windows: Vec<&Profile> = files.iter().filter_map(|file| file.first()).collect();
    let is_one_window = matches!(windows[..], [one, other] if are_of_one_window(one, other));
    if is_one_window {
        let profile = join(files.into_iter().flatten().collect())?.into_profile();
        return output.write(|writer| page::write(&profile, writer));
    }
    let joined = files.into_iter().map(|file| Ok(join(file)?.into_profile()));
    let profiles: Vec<Profile> = joined.collect::<anyhow::Result<_>>()?;
    let [before, after] = &profiles[..] else {
        bail!("a capture is missing: give two");
    };
    let changes = diff(before, after)?;
    output.write(|writer| page::write_comparison(before, after, &changes, writer))
}

/// Returns the time of every thread.
///
/// Without samples, all running time has no stack.
///
/// # Errors
/// The captures have no accounts of threads.
fn accounted(joined: Joined) -> anyhow::Result<Merged> {
    match joined {
        Joined::Merged(merged) => Ok(*merged),
        Joined::One(profile) if Merged::is_merged(&profile) => Ok(Merged::from_profile(*profile)),
        Joined::One(times) if !times.threads.is_empty() => {
            Ok(merge(&Profile::new(Unit::Samples), &times))
        }
        Joined::One(_) => bail!(
            "cannot make a report: the capture has no accounts of threads; also give the capture of offcputime of the same window, or give one of wallclock"
        ),
    }
}
