//! wallclock: where every thread's time goes, from one oncputime and one
//! offcputime run side by side over the same window.

mod arguments;
mod children;
mod files;
mod outputs;
mod progress;
mod publish;
mod results;
mod session;
mod tables;
mod targets;

use std::collections::BTreeMap;
use std::env;
use std::process::ExitCode;
use std::time::Duration;

use profile::merge::merge;

pub use crate::arguments::Arguments;
use crate::outputs::Outputs;
use crate::session::Measurement;
use crate::targets::{Targets, command_line};
pub use tables::write as write_tables;

/// The program.
#[must_use]
pub fn run(command: &cli::CommandLine) -> ExitCode {
    cli::run(command.called(), || {
        let arguments: Arguments = command.parse()?;
        let targets = Targets::new(arguments.processes.all())?;
        let outputs = Outputs::new(&arguments, &targets.pids)?;
        // While they live: an ended process has no command line.
        let pids = targets.pids.iter();
        let commands: BTreeMap<u32, String> = pids.map(|&pid| (pid, command_line(pid))).collect();

        let mut measurement = session::measure(&arguments, targets)?;
        if arguments.verbose {
            for words in measurement.outcomes().iter().flat_map(|it| &it.words) {
                eprintln!("{words}");
            }
        }
        for (tool, outcome) in ["oncputime", "offcputime"]
            .iter()
            .zip(measurement.outcomes())
        {
            let losses = outcome.profile.losses;
            if losses.any() {
                eprintln!("wallclock: {tool} {losses}; the reports say what that means");
            }
        }
        describe(&mut measurement, &arguments);

        let [on_cpu, off_cpu] = measurement.outcomes().map(|outcome| &outcome.profile);
        let merged = merge(on_cpu, off_cpu);
        outputs.write(merged, [on_cpu, off_cpu], &commands)
    })
}

/// Says in both profiles how they came about.
fn describe(measurement: &mut Measurement, arguments: &Arguments) {
    let (measured, ending) = (measurement.measured, measurement.ending);
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    for outcome in [&mut measurement.on_cpu, &mut measurement.off_cpu] {
        let meta = &mut outcome.profile.meta;
        let line = env::args_os().map(|word| word.to_string_lossy().into_owned());
        meta.command_line = line.collect();
        meta.window.length_ns = nanoseconds(measured);
        meta.window.requested_ns = nanoseconds(arguments.duration);
        meta.window.ending = ending;
    }
}
