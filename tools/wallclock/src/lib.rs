//! `wallclock` shows where every thread's time goes. It runs oncputime and offcputime side by side
//! over the same window.

mod arguments;
mod children;
mod cpus;
mod event_loops;
mod goroutines;
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
use crate::session::{Interrupted, Measurement};
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
        let targets = find_targets(&arguments, command.as_ref())?;
        let outputs = Outputs::new(&arguments, &targets.pids, command.as_ref(), 1)?;
        // wallclock reads command lines now, because an ended process has none.
        let pids = targets.pids.iter().copied();
        let pids = pids.chain(arguments.cgroups.processes());
        let commands: BTreeMap<u32, Text> = pids.map(|pid| (pid, command_line_of(pid))).collect();
        process::stop_helper();

        let signals = Signals::install().context("cannot watch for signals")?;
        if arguments.recorder().is_some() {
            signals.watch_requests_to_write()?;
        }
        let run = Run {
            arguments: &arguments,
            commands: &commands,
            signals: &signals,
        };
        let outcome = run.measure_all(targets, outputs, &mut command);
        cli::conclude(command_line.called(), outcome, command, Some(&signals))
    })
}

/// Returns the targets that the command line chooses.
fn find_targets(arguments: &Arguments, command: Option<&HeldCommand>) -> anyhow::Result<Targets> {
    let wait = &arguments.wait;
    match (command, arguments.processes.all().next()) {
        (Some(command), _) => Targets::of_command(command),
        (None, Some(_)) => Targets::new(&arguments.processes, wait),
        (None, None) => Ok(Targets::open_ended(&arguments.cgroups, wait)),
    }
}

/// A run of wallclock.
struct Run<'a> {
    arguments: &'a Arguments,
    /// Command lines of the processes that exist before measuring.
    commands: &'a BTreeMap<u32, Text>,
    signals: &'a Signals,
}

impl Run<'_> {
    /// Measures, and writes the results. After a request to write, starts the next recording.
    fn measure_all(
        &self,
        mut targets: Targets,
        mut outputs: Outputs,
        command: &mut Option<HeldCommand>,
    ) -> anyhow::Result<()> {
        let mut recording = 1;
        loop {
            match self.measure(targets, outputs, command.as_mut()) {
                Ok(true) => {}
                // The recordings before are written.
                Err(error) if recording > 1 && error.is::<Interrupted>() => return Ok(()),
                outcome => return outcome.map(|_| ()),
            }
            recording += 1;
            cli::say("wallclock: a new recording starts");
            targets = find_targets(self.arguments, command.as_ref())?;
            let pids = targets.pids.clone();
            outputs = Outputs::new(self.arguments, &pids, command.as_ref(), recording)?;
        }
    }

    /// Measures, and writes the results. Returns whether another recording follows.
    fn measure(
        &self,
        targets: Targets,
        outputs: Outputs,
        mut command: Option<&mut HeldCommand>,
    ) -> anyhow::Result<bool> {
        let Run {
            arguments,
            commands,
            signals,
        } = self;
        let mut measurement =
            session::measure(arguments, targets, command.as_deref_mut(), signals)?;
        for outcome in measurement.outcomes() {
            let lines = if arguments.verbose {
                &outcome.lines[..]
            } else {
                outcome.debug_files.as_slice()
            };
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
        let mut event_loops = std::mem::take(&mut measurement.event_loops);
        let goroutines = std::mem::take(&mut measurement.goroutines);
        let [on_cpu, off_cpu] = measurement.outcomes().map(|outcome| &outcome.profile);
        let merged = merge(on_cpu, off_cpu);
        if let Some(expression) = named.filter(|_| merged.threads.is_empty()) {
            bail!(cli::nobody_named(expression.as_str()));
        }
        report::find_stacks(&mut event_loops, &merged);
        let cpus = measurement.cpus.as_ref();
        let end = command.and_then(|command| command.end().ok());
        let can_go_on = !outputs.include_stdout();
        outputs.write(
            merged,
            [on_cpu, off_cpu],
            commands,
            (cpus, event_loops, goroutines),
            end,
        )?;
        Ok(measurement.is_to_go_on && can_go_on)
    }
}

/// Fills in the metadata of both profiles.
fn describe(measurement: &mut Measurement, arguments: &Arguments) {
    let (measured, ending) = (measurement.measured, measurement.ending);
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let recorder = arguments.recorder();
    if let Some(recorder) = &recorder {
        let length_ns = measurement.off_cpu.profile.meta.window.length_ns;
        let reach = cli::recording::reach(recorder, length_ns, nanoseconds(measured));
        cli::say(format_args!("wallclock: {reach}"));
    }
    for outcome in [&mut measurement.on_cpu, &mut measurement.off_cpu] {
        let meta = &mut outcome.profile.meta;
        meta.command_line = cli::own_command_line();
        let targets = arguments.thread_name.subject(meta.targets.to_string());
        meta.targets = targets.into();
        if recorder.is_none() {
            meta.window.length_ns = nanoseconds(measured);
        }
        meta.window.requested_ns = arguments.duration().map_or(0, nanoseconds);
        meta.window.ending = ending;
    }
}
