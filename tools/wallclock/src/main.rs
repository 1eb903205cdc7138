//! `wallclock`: where every thread's time goes, from one oncputime and one
//! offcputime run side by side over the same window.

mod arguments;
mod children;
mod files;
mod progress;
mod publish;
mod results;
mod session;
mod targets;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use export::report::Run;
use profile::merge::merge;

use crate::arguments::Arguments;
use crate::files::Names;
use crate::results::Results;
use crate::session::Measurement;
use crate::targets::{Targets, command_line};

fn main() -> ExitCode {
    cli::run("wallclock", run)
}

fn run() -> anyhow::Result<()> {
    let mut arguments: Arguments = cli::parse()?;
    arguments.pids.sort_unstable();
    arguments.pids.dedup();
    let targets = Targets::new(&arguments.pids)?;
    let names = Names::new(
        arguments.output.as_deref(),
        &arguments.pids,
        seconds_since_1970(),
    )?;
    publish::check(&names)?;
    // While they live: an ended process has no command line.
    let pids = arguments.pids.iter();
    let commands: BTreeMap<u32, String> = pids.map(|&pid| (pid, command_line(pid))).collect();

    let Measurement {
        on_cpu,
        off_cpu,
        measured,
        ending,
    } = session::measure(&arguments, targets)?;
    if arguments.verbose {
        for words in on_cpu.words.iter().chain(&off_cpu.words) {
            eprintln!("{words}");
        }
    }
    for (tool, losses) in [
        ("oncputime", on_cpu.profile.losses),
        ("offcputime", off_cpu.profile.losses),
    ] {
        if losses.any() {
            eprintln!("wallclock: {tool} {losses}; the reports say what that means");
        }
    }

    let merged = merge(&on_cpu.profile, &off_cpu.profile);
    let run = Run {
        requested: arguments.duration,
        measured,
        ending,
        frequency: arguments.frequency,
        min_block_us: arguments.min_block_us,
        on_cpu_lost: on_cpu.profile.losses,
        off_cpu_lost: off_cpu.profile.losses,
        unclocked: merged.unclocked,
    };
    let results = Results {
        run: &run,
        merged: &merged,
        commands: &commands,
        thread_files: arguments.thread_files,
    };
    let mut told = Vec::new();
    results.write(&names, &mut told)?;
    cli::Output::new(None)?.write(|writer| writer.write_all(&told))
}

fn seconds_since_1970() -> u64 {
    // A clock set before 1970 is of no use for a name.
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_secs())
}
