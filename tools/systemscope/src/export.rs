//! `systemscope export`: captures in other formats.

use std::process::ExitCode;

use clap::Parser;
use cli::{CommandLine, Destinations, OutputFlags};
use export::Written;
use profile::Profile;
use profile::join::join;

use crate::captures::CaptureFlags;

/// Writes captures in other formats.
///
/// What a tool measured into a capture (-o run.scope) is written as the tool would
/// have written it at once. Samples and off-CPU time of one window are put together
/// as wallclock does.
#[derive(Parser, Debug)]
#[command(name = "export", after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    captures: CaptureFlags,

    /// Print nanoseconds instead of microseconds
    #[arg(long)]
    nanoseconds: bool,

    #[command(flatten)]
    output: OutputFlags,
}

const EXAMPLES: &str = "\
Examples:
  systemscope export run.scope --format pprof -o run.pb.gz
  systemscope export run.scope -o run.speedscope.json -o run.svg
  systemscope export on.scope off.scope | flamegraph.pl > run.svg";

/// The program.
pub(crate) fn run(command_line: &CommandLine) -> ExitCode {
    cli::run(command_line.called(), || {
        let Arguments {
            captures,
            nanoseconds,
            output,
        } = command_line.parse()?;
        let destinations = Destinations::new(output.plan()?)?;
        let profiles = captures.read()?;
        let options = output.options(nanoseconds);
        let parts = match destinations.include_captures() {
            true => profiles.clone(),
            false => Vec::new(),
        };
        let parts: Vec<&Profile> = parts.iter().collect();
        let whole = join(profiles)?.into_profile();
        let written = destinations.write_with_parts(&whole, &parts, &options)?;
        for line in written.iter().filter_map(Written::left_out) {
            cli::say(format_args!("{}: {line}", command_line.called()));
        }
        Ok(())
    })
}
