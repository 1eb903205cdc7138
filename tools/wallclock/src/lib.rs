//! `wallclock` shows where every thread's time goes. It runs oncputime and offcputime side by side
//! over the same window.

mod arguments;
mod children;
mod cpus;
mod output;
mod progress;
mod roles;
mod session;
mod tables;
mod targets;
mod thread_names;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use cli::{HeldCommand, Output, Signals};
use profile::Text;
use profile::merge::merge;
use report::overview::explanation;

pub use crate::arguments::Arguments;
use crate::output::Outputs;
use crate::session::Measurement;
use crate::targets::{Targets, command_line_of};
pub use tables::{Limits, write as write_tables};

/// Runs `wallclock` from its command line to its exit status.
#[must_use]
pub fn run(command_line: &cli::CommandLine) -> ExitCode {
    cli::run(command_line.called(), || {
        let arguments: Arguments = command_line.parse()?;
        if arguments.explain {
            Output::new(None)?.write(|writer| writer.write_all(explanation().as_bytes()))?;
            return Ok(ExitCode::SUCCESS);
        }
        let wait = &arguments.wait;
        wait.check(&arguments.processes, &arguments.cgroups)?;
        let mut command = arguments.command.start()?;
        let targets = match (&command, arguments.processes.all().next()) {
            (Some(command), _) => Targets::of_command(command)?,
            (None, Some(_)) => Targets::new(&arguments.processes, wait)?,
            (None, None) => Targets::open_ended(&arguments.cgroups, wait),
        };
        let outputs = Outputs::new(&arguments, &targets.pids, command.as_ref())?;
        // wallclock reads command lines now, because an ended process has none.
        let pids = targets.pids.iter().copied();
        let pids = pids.chain(arguments.cgroups.processes());
        let commands: BTreeMap<u32, Text> = pids.map(|pid| (pid, command_line_of(pid))).collect();
        process::stop_helper();

        let signals = Signals::install().context("cannot watch for signals")?;
        let outcome = measure(
            &arguments,
            targets,
            outputs,
            &commands,
            command.as_mut(),
            &signals,
        );
        cli::conclude(command_line.called(), outcome, command, Some(&signals))
    })
}

/// Measures, and writes the results. `commands` has the command lines of the processes that exist
/// before measuring.
fn measure(
    arguments: &Arguments,
    targets: Targets,
    outputs: Outputs,
    commands: &BTreeMap<u32, Text>,
    mut command: Option<&mut HeldCommand>,
    signals: &Signals,
) -> anyhow::Result<()> {
    let mut measurement = session::measure(arguments, targets, command.as_deref_mut(), signals)?;
    if arguments.verbose {
        let lines = (measurement.outcomes().into_iter()).flat_map(|outcome| &outcome.lines);
        for line in lines {
            cli::say(line);
        }
    }
    describe(&mut measurement, arguments);

    let named = arguments.thread_name.expression();
    if let Some(expression) = named {
        let (on_cpu, off_cpu) = (&mut measurement.on_cpu, &mut measurement.off_cpu);
        thread_names::retain(expression, &mut on_cpu.profile, &mut off_cpu.profile);
    }
    let [on_cpu, off_cpu] = measurement.outcomes().map(|outcome| &outcome.profile);
    let merged = merge(on_cpu, off_cpu);
    if let Some(expression) = named.filter(|_| merged.threads.is_empty()) {
        bail!(cli::nobody_named(expression.as_str()));
    }
    let cpus = measurement.cpus.as_ref();
    let end = command.and_then(|command| command.end().ok());
    outputs.write(merged, [on_cpu, off_cpu], commands, cpus, end)
}

/// Fills in the metadata of both profiles.
fn describe(measurement: &mut Measurement, arguments: &Arguments) {
    let (measured, ending) = (measurement.measured, measurement.ending);
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    for outcome in [&mut measurement.on_cpu, &mut measurement.off_cpu] {
        let meta = &mut outcome.profile.meta;
        meta.command_line = cli::own_command_line();
        let targets = arguments.thread_name.subject(meta.targets.to_string());
        meta.targets = targets.into();
        meta.window.length_ns = nanoseconds(measured);
        meta.window.requested_ns = arguments.duration().map_or(0, nanoseconds);
        meta.window.ending = ending;
    }
}
