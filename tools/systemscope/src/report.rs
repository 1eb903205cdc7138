//! `systemscope report`: wallclock's tables, from captures.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::bail;
use clap::Parser;
use cli::{CommandLine, Output};
use export::report::Run;
use export::report::overview::EXPLANATION;
use profile::join::Joined;
use profile::merge::{Merged, merge};
use profile::{Profile, Unit};
use wallclock::Limits;

use crate::captures::CaptureFlags;

/// Prints wallclock's report: what held a program up, and where the time of its threads went.
#[derive(Parser, Debug)]
#[command(name = "report", after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    captures: CaptureFlags,

    /// Explain the lines and columns of reports, and exit
    #[arg(long, exclusive = true)]
    explain: bool,

    /// Also print details on sampling and losses
    #[arg(short = 'v', long)]
    verbose: bool,

    /// Processes that are listed, with their ancestors: those with most work; the others are
    /// one row
    #[arg(long, value_name = "N", default_value_t = Limits::default().processes)]
    processes: usize,

    /// Processes whose threads are listed, where there are several
    #[arg(long, value_name = "N", default_value_t = Limits::default().tables)]
    tables: usize,
}

const EXAMPLES: &str = "\
Examples:
  systemscope report run.scope              # of wallclock -o run.scope
  systemscope report --tables 20 run.scope  # of many processes, the threads of more
  systemscope report on.scope off.scope     # of oncputime and offcputime --states,
                                            # at the same time";

/// The program.
pub(crate) fn run(command_line: &CommandLine) -> ExitCode {
    cli::run(command_line.called(), || {
        let Arguments {
            captures,
            explain,
            verbose,
            processes,
            tables,
        } = command_line.parse()?;
        let output = Output::new(None)?;
        if explain {
            return output.write(|writer| writer.write_all(EXPLANATION.as_bytes()));
        }
        let merged = accounted(captures.joined()?)?;
        let run = Run::of(&merged);
        let limits = Limits { processes, tables };
        // What there is to know of them is in the capture.
        let before = BTreeMap::new();
        let rest = "--tables N lists those of N processes";
        let look = cli::report_look(&std::io::stdout()).with_details(verbose);
        output.write(|writer| {
            wallclock::write_tables(&run, &merged, &before, limits, look, rest, writer)
        })
    })
}

/// Every thread's time; without samples, all of their running time is without a stack.
fn accounted(joined: Joined) -> anyhow::Result<Merged> {
    match joined {
        Joined::Merged(merged) => Ok(*merged),
        Joined::One(times) if !times.threads.is_empty() => {
            Ok(merge(&Profile::new(Unit::Samples), &times))
        }
        Joined::One(_) => bail!(
            "there are no accounts of threads in it, which a report is made of: give the capture of offcputime of the same window, too, or one of wallclock"
        ),
    }
}
