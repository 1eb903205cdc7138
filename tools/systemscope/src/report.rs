//! `systemscope report`: wallclock's tables, from captures.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::bail;
use clap::Parser;
use cli::{CommandLine, Output};
use export::report::Run;
use profile::join::Joined;
use profile::merge::{Merged, merge};
use profile::{Process, Profile, Unit};

use crate::captures::CaptureFlags;

/// Prints wallclock's tables: where the time of every thread went.
#[derive(Parser, Debug)]
#[command(name = "report", after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    captures: CaptureFlags,
}

const EXAMPLES: &str = "\
Examples:
  systemscope report run.scope              # of wallclock -o run.scope
  systemscope report on.scope off.scope     # of oncputime and offcputime --states,
                                            # at the same time";

/// The program.
pub(crate) fn run(command_line: &CommandLine) -> ExitCode {
    cli::run(command_line.called(), || {
        let Arguments { captures } = command_line.parse()?;
        let merged = accounted(captures.joined()?)?;
        let commands: BTreeMap<u32, String> = (merged.profile.processes.iter())
            .map(|process| (process.pid, command(process)))
            .collect();
        let run = Run::of(&merged);
        Output::new(None)?.write(|writer| wallclock::write_tables(&run, &merged, &commands, writer))
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

/// A process's command line, or what else is known of it.
fn command(process: &Process) -> String {
    match &process.command_line[..] {
        [] => process.executable.clone(),
        words => words.join(" ").replace(char::is_control, "?"),
    }
}
