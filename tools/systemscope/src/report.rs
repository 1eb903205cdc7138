//! `systemscope report` prints wallclock's tables from captures.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::bail;
use clap::Parser;
use cli::{CommandLine, Output};
use profile::join::Joined;
use profile::merge::{Merged, merge};
use profile::{Profile, Unit};
use report::Run;
use report::overview::explanation;
use wallclock::Limits;

use crate::captures::CaptureFlags;

/// Print wallclock's report from captures: what held a program up, and where its time went.
#[derive(Parser, Debug)]
#[command(name = "report", after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    captures: CaptureFlags,

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
  systemscope report --tables 20 run.scope  # the threads of up to 20 processes
  systemscope report on.scope off.scope     # made by oncputime and offcputime --states
                                            # at the same time";

/// Runs `systemscope report` from its command line to its exit status.
pub(crate) fn run(command_line: &CommandLine) -> ExitCode {
    cli::run(command_line.called(), || {
        let Arguments {
            captures,
            explain,
            verbose,
            processes,
            tables,
            help: _,
        } = command_line.parse()?;
        let output = Output::new(None)?;
        if explain {
            return output.write(|writer| writer.write_all(explanation().as_bytes()));
        }
        let merged = accounted(captures.joined()?)?;
        let run = Run::of(&merged);
        let limits = Limits { processes, tables };
        // The capture has the command lines of processes. This command read none before.
        let before = BTreeMap::new();
        let rest = "--tables N lists those of N processes";
        let look = cli::report_look(&std::io::stdout()).with_details(verbose);
        output.write(|writer| {
            wallclock::write_tables(&run, &merged, &before, limits, look, rest, writer)
        })
    })
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
        Joined::One(times) if !times.threads.is_empty() => {
            Ok(merge(&Profile::new(Unit::Samples), &times))
        }
        Joined::One(_) => bail!(
            "cannot make a report: the capture has no accounts of threads; also give the capture of offcputime of the same window, or give one of wallclock"
        ),
    }
}
