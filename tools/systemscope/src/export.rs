//! `systemscope export` writes captures in other formats.

use std::process::ExitCode;

use clap::Parser;
use cli::{CommandLine, Destinations, OutputFlags};
use export::Written;
use profile::Profile;
use profile::join::join;

use crate::captures::CaptureFlags;

/// Write captures in other formats.
///
/// export writes a capture (-o run.scope of a tool) as the tool itself would have written the
/// format. It joins samples and off-CPU time of one window as wallclock does.
#[derive(Parser, Debug)]
#[command(name = "export", after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    captures: CaptureFlags,

    #[command(flatten)]
    output: OutputFlags,

    /// Print nanoseconds instead of microseconds
    #[arg(long, help_heading = "Output")]
    nanoseconds: bool,

    #[command(flatten)]
    help: cli::HelpFlag,
}

const EXAMPLES: &str = "\
Examples:
  systemscope export run.scope --format pprof -o run.pb.gz
  systemscope export run.scope -o run.speedscope.json -o run.svg
  systemscope export on.scope off.scope | flamegraph.pl > run.svg";

/// Runs `systemscope export` from its command line to its exit status.
pub(crate) fn run(command_line: &CommandLine) -> ExitCode {
    cli::run(command_line.called(), || {
        let Arguments {
            captures,
            nanoseconds,
            output,
            help: _,
        } = command_line.parse()?;
        let destinations = Destinations::new(output.plan()?)?;
        let profiles = captures.read()?;
        let options = output.options(nanoseconds);
        let kept = if destinations.include_captures() {
            profiles.clone()
        } else {
            Vec::new()
        };
        let parts: Vec<&Profile> = kept.iter().collect();
        let whole = join(profiles)?.into_profile();
        let written = destinations.write_with_parts(&whole, &parts, &options)?;
        for line in written.iter().filter_map(Written::left_out) {
            cli::say(format_args!("{}: {line}", command_line.called()));
        }
        Ok(())
    })
}
