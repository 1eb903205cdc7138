//! Output: a tree of files, or the formats that the command line names.

mod files;
mod publish;
mod results;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::bail;
use cli::{Destinations, HeldCommand, Output, check_shows_times, format_of_file, pair};
use export::Options;
use export::folded::Folded;
use profile::merge::Merged;
use profile::{Profile, Text};
use report::{CommandEnd, Cpus, EventLoop, Goroutines, Run};

use crate::arguments::Arguments;
use crate::tables::{self, Limits};
use files::Names;
use results::Results;

/// Hint printed beside formats: how to list the threads of more processes.
const ELSEWHERE: &str =
    "`systemscope report --tables N` lists those of N processes in a capture (-o FILE.scope)";

/// Destinations of the output. wallclock has checked that they are writable.
pub(crate) struct Outputs {
    kind: Kind,
    options: Options,
    thread_files: usize,
    limits: Limits,
    /// Set if a command that wallclock started uses standard output.
    is_quiet: bool,
    /// Set if the whole machine is measured.
    is_of_machine: bool,
    is_verbose: bool,
}

enum Kind {
    /// A tree of flame graphs, folded stacks and analyses, under these names.
    Tree(Names),
    /// The whole profile in each format.
    Formats(Destinations),
}

impl Outputs {
    /// Returns the output that the command line requests: formats if it names a format or a file
    /// with a format's ending, otherwise the tree. `recording` is 1, or higher if a recorder goes
    /// on after it has written.
    ///
    /// # Errors
    /// Returns an error if the formats and files do not fit together, or if a destination cannot be
    /// written.
    pub(crate) fn new(
        arguments: &Arguments,
        pids: &[u32],
        command: Option<&HeldCommand>,
        recording: u32,
    ) -> anyhow::Result<Outputs> {
        let (formats, files) = arguments.output.named();
        let known = |file: &Path| format_of_file(file).is_some();
        let kind = match &files[..] {
            [] if formats.is_empty() => Kind::Tree(tree(None, pids)?),
            [prefix] if formats.is_empty() && !known(prefix) => {
                Kind::Tree(tree(Some(prefix), pids)?)
            }
            files if formats.is_empty() && !files.iter().all(|file| known(file)) => {
                return Err(cli::usage(
                    "several files each need a format's ending, such as .svg, .pb.gz or .scope: see --format",
                ));
            }
            files => {
                let mut plan = pair(&formats, files, &Folded)?;
                if let Some(flag) = arguments.timeline.asking_flag() {
                    check_shows_times(flag, &plan)?;
                }
                if let Some(command) = command {
                    command.plan_files("wallclock", &mut plan);
                }
                let numbered = plan.iter().map(|planned| planned.numbered(recording));
                Kind::Formats(Destinations::new(numbered.collect())?)
            }
        };
        Ok(Outputs {
            kind,
            options: arguments.frames.options(),
            thread_files: arguments.thread_files,
            limits: Limits {
                processes: arguments.processes_listed,
                ..Limits::default()
            },
            is_quiet: command.is_some(),
            is_of_machine: arguments.all,
            is_verbose: arguments.verbose,
        })
    }

    /// Returns whether data goes to standard output.
    pub(crate) fn include_stdout(&self) -> bool {
        matches!(&self.kind, Kind::Formats(destinations) if destinations.include_stdout())
    }

    /// Writes the profile and a report. The report goes to standard output, or to standard error if
    /// data or a command's output goes to standard output.
    ///
    /// # Errors
    /// Returns an error if no thread was seen, or if a destination cannot be written.
    pub(crate) fn write(
        self,
        merged: Merged,
        parts: [&Profile; 2],
        commands: &BTreeMap<u32, Text>,
        (cpus, event_loops, goroutines): (Option<&Cpus>, Vec<EventLoop>, Vec<Goroutines>),
        command: Option<CommandEnd>,
    ) -> anyhow::Result<()> {
        let run = Run {
            cpu_times: cpus.cloned(),
            event_loops,
            goroutines,
            is_of_machine: self.is_of_machine,
            command,
            ..Run::of(&merged)
        };
        let goes_to_stderr = self.is_quiet || self.include_stdout();
        let look = if goes_to_stderr {
            cli::report_look(&std::io::stderr())
        } else {
            cli::report_look(&std::io::stdout())
        };
        let look = look.with_details(self.is_verbose);
        let mut report = Vec::new();
        let (thread_files, mut limits) = (self.thread_files, self.limits);
        match self.kind {
            Kind::Tree(names) => {
                let results = Results {
                    run: &run,
                    merged: &merged,
                    commands,
                    thread_files,
                    limits,
                    look,
                    options: Options {
                        reasons: self.options.reasons,
                        ..Options::default()
                    },
                };
                results.write(&names, &mut report)?;
            }
            Kind::Formats(destinations) => {
                if merged.threads.is_empty() {
                    bail!("no thread was seen; did the process end before measuring began?");
                }
                if self.is_of_machine {
                    limits.tables = 0;
                }
                tables::write(
                    &run,
                    &merged,
                    commands,
                    limits,
                    look,
                    ELSEWHERE,
                    &mut report,
                )?;
                let profile = merged.into_profile();
                destinations.write_with_parts(&profile, &parts, &self.options)?;
            }
        }
        if goes_to_stderr {
            // A closed terminal is no reason to fail.
            let _ = std::io::stderr().write_all(&report);
            return Ok(());
        }
        Output::new(None)?.write(|writer| writer.write_all(&report))
    }
}

fn tree(prefix: Option<&Path>, pids: &[u32]) -> anyhow::Result<Names> {
    // With a clock before 1970 the name has 0 seconds.
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = since_1970.map_or(0, |time| time.as_secs());
    let names = Names::new(prefix, pids, seconds)?;
    publish::check(&names)?;
    Ok(names)
}
