//! From a merged measurement to files, and what is said of them on the terminal.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::bail;
use export::report::{self, Cpus, Known, Process, Row, Run};
use export::svg::{self, Caption, Colours, STATE_COLOURS};
use export::{Options, folded};
use profile::merge::{Merged, ThreadProfile};
use profile::{Sample, Text};

use super::files::{MACHINE_ENDINGS, Names, SINGLE_ENDINGS, thread_base, with_ending};
use super::publish::Staging;
use crate::tables::{self, Limits, Part, busiest, parts};

/// What files with a prefix of their own are called until they are in their place.
const STAGED: &str = "staged";
/// How many processes have files of their own: those that kept the CPUs busiest.
const PROCESS_FILES: usize = 100;

/// Everything that the files are made of.
pub(crate) struct Results<'a> {
    pub(crate) run: &'a Run,
    pub(crate) merged: &'a Merged,
    /// The command line of each process that was asked for.
    pub(crate) commands: &'a BTreeMap<u32, Text>,
    /// How many threads may have files of their own.
    pub(crate) thread_files: usize,
    /// How much is told of many processes.
    pub(crate) limits: Limits,
    /// What the CPUs did, if all of the machine was measured.
    pub(crate) cpus: Option<&'a Cpus>,
    /// How stacks are written.
    pub(crate) options: Options,
}

impl Results<'_> {
    /// Writes all files and puts them in their place; then tells of them.
    ///
    /// # Errors
    /// No thread was seen, or a file cannot be written: then there is none.
    pub(crate) fn write(&self, names: &Names, terminal: &mut dyn Write) -> anyhow::Result<()> {
        let known = Known::new(&self.merged.profile, self.commands);
        let mut parts = parts(self.merged, &known);
        // Of several that were asked for each has a folder, whoever of them was seen.
        let is_alone = self.commands.len() <= 1;
        match &mut parts[..] {
            [] => bail!("no thread was seen; did the process end before measuring began?"),
            parts if self.cpus.is_some() => self.write_machine(&known, parts, names, terminal)?,
            [part] if is_alone && part.threads.len() == 1 => {
                let placed = self.write_single(part, names)?;
                self.tell(part, &placed, terminal)?;
            }
            [part] if is_alone => {
                let staging = Staging::new(&names.folder)?;
                self.write_part(part, &staging, Path::new(""), names)?;
                staging.put_folder(&names.folder)?;
                self.tell(part, &self.placed(part, &names.folder, names), terminal)?;
            }
            parts => self.write_several(&known, parts, names, terminal)?,
        }
        Ok(())
    }

    /// The files of a whole machine: all of it together.
    fn write_machine(
        &self,
        known: &Known<'_>,
        parts: &[Part<'_>],
        names: &Names,
        terminal: &mut dyn Write,
    ) -> anyhow::Result<()> {
        let staging = Staging::new(&names.prefix)?;
        let paths = MACHINE_ENDINGS.map(|ending| PathBuf::from(format!("{STAGED}{ending}")));
        self.write_together(known, parts, &staging, paths)?;
        let placed = staging.put_files(STAGED, &names.prefix, &MACHINE_ENDINGS)?;
        self.write_report(known, parts, terminal)?;
        writeln!(terminal)?;
        let kinds = ["Flame graph", "Folded stacks", "Processes"].into_iter();
        let lines = kinds.zip(placed).collect();
        Placed { lines }.tell(terminal)?;
        Ok(())
    }

    /// The files of several processes: all of them together, and a folder for each of the
    /// busiest.
    fn write_several(
        &self,
        known: &Known<'_>,
        parts: &mut [Part<'_>],
        names: &Names,
        terminal: &mut dyn Write,
    ) -> anyhow::Result<()> {
        let staging = Staging::new(&names.folder)?;
        let together = [
            PathBuf::from("combined.svg"),
            PathBuf::from("combined.folded"),
            with_ending(Path::new(&names.base), "_processes.txt"),
        ];
        self.write_together(known, parts, &staging, together.clone())?;
        let with_files = busiest(parts, PROCESS_FILES);
        for part in parts.iter_mut() {
            if with_files.contains(&part.pid) {
                let inside = folder_of(part);
                staging.make_folder(&inside)?;
                self.write_part(part, &staging, &inside, names)?;
            }
        }
        staging.put_folder(&names.folder)?;

        self.write_report(known, parts, terminal)?;
        let shown = busiest(parts, self.limits.tables);
        for part in parts.iter().filter(|part| shown.contains(&part.pid)) {
            writeln!(terminal)?;
            let folder = names.folder.join(folder_of(part));
            self.tell(part, &self.placed(part, &folder, names), terminal)?;
        }
        writeln!(terminal)?;
        let folders = names.folder.join("pid<PID>");
        let place = format!("in {}", folders.display());
        tables::write_rest(parts.len() - shown.len(), &place, terminal)?;
        let each = match with_files.len() < parts.len() {
            true => "Some processes",
            false => "Each process",
        };
        let kinds = ["Flame graph", "Folded stacks", "Processes"].into_iter();
        let mut lines: Vec<_> = kinds
            .zip(together.map(|path| names.folder.join(path)))
            .collect();
        lines.push((each, folders));
        Placed { lines }.tell(terminal)?;
        Ok(())
    }

    /// The flame graph, the folded stacks and the report of all processes together.
    fn write_together(
        &self,
        known: &Known<'_>,
        parts: &[Part<'_>],
        staging: &Staging,
        [svg, folded, report]: [PathBuf; 3],
    ) -> anyhow::Result<()> {
        let profile = &self.merged.profile;
        // The first frame is the process.
        let samples = || {
            parts.iter().flat_map(|part| {
                let threads = part.threads.iter();
                let samples = threads.flat_map(|(thread, _)| samples_of(thread));
                let comm = part.name;
                samples.map(move |(sample, value)| (Sample { comm, ..sample }, value))
            })
        };
        let whose = match self.cpus {
            Some(_) => "the whole machine".to_owned(),
            None => format!("{} processes", parts.len()),
        };
        let caption = Caption {
            title: format!("Wall clock of {whose}"),
            subtitle: format!(
                "widths: µs, added up over {} threads; processes of one name are drawn as one; {STATE_COLOURS}",
                self.merged.threads.len()
            ),
        };
        staging.write(&svg, |writer| {
            svg::write(
                profile,
                samples(),
                &self.options,
                Colours::States,
                &caption,
                writer,
            )
        })?;
        staging.write(&folded, |writer| {
            let options = Options {
                per_process: true,
                ..self.options
            };
            folded::write_samples(profile, samples(), &options, writer).map(drop)
        })?;
        staging.write(&report, |writer| {
            self.write_report(known, parts, writer)?;
            if self.cpus.is_none() && parts.len() > PROCESS_FILES {
                writeln!(
                    writer,
                    "Files of their own: the {PROCESS_FILES} processes that kept the CPUs busiest."
                )?;
            }
            Ok(())
        })
    }

    /// Writes the table of all processes, and of the CPUs of a machine.
    fn write_report(
        &self,
        known: &Known<'_>,
        parts: &[Part<'_>],
        writer: &mut dyn Write,
    ) -> io::Result<()> {
        tables::write_all(self.run, self.merged, known, parts, self.limits, writer)?;
        match self.cpus {
            Some(cpus) => tables::write_cpus(self.run, cpus, writer),
            None => Ok(()),
        }
    }

    fn write_single(&self, part: &Part<'_>, names: &Names) -> anyhow::Result<Placed> {
        let staging = Staging::new(&names.prefix)?;
        if let Some((thread, role)) = part.threads.first() {
            let [svg, folded, analysis] = SINGLE_ENDINGS.map(|ending| format!("{STAGED}{ending}"));
            self.write_thread(
                part,
                thread,
                role,
                &staging,
                [svg, folded, analysis].map(PathBuf::from),
            )?;
        }
        let placed = staging.put_files(STAGED, &names.prefix, &SINGLE_ENDINGS)?;
        Ok(Placed {
            lines: ["Flame graph", "Folded stacks", "Analysis"]
                .into_iter()
                .zip(placed)
                .collect(),
        })
    }

    /// One process's files, inside a folder of the staging one.
    fn write_part(
        &self,
        part: &mut Part<'_>,
        staging: &Staging,
        inside: &Path,
        names: &Names,
    ) -> anyhow::Result<()> {
        part.longest_lived_first();
        for (thread, role) in part.threads.iter().take(self.thread_files) {
            let base = inside.join(thread_base(thread.thread.id, role));
            let paths =
                [".svg", ".folded", "_analysis.txt"].map(|ending| with_ending(&base, ending));
            self.write_thread(part, thread, role, staging, paths)?;
        }
        let samples = || {
            part.threads
                .iter()
                .flat_map(|(thread, _)| samples_of(thread))
        };
        staging.write(&inside.join("combined.folded"), |writer| {
            let options = Options {
                per_thread: true,
                ..self.options
            };
            folded::write_samples(&self.merged.profile, samples(), &options, writer).map(drop)
        })?;
        let caption = Caption {
            title: format!("Wall clock of process {}: {}", part.pid, part.command),
            subtitle: format!(
                "widths: µs, added up over {} threads; threads of one name are drawn as one; {STATE_COLOURS}",
                part.threads.len()
            ),
        };
        staging.write(&inside.join("combined.svg"), |writer| {
            svg::write(
                &self.merged.profile,
                samples(),
                &self.options,
                Colours::States,
                &caption,
                writer,
            )
        })?;
        part.busiest_first();
        staging.write(&inside.join(analysis_name(names)), |writer| {
            report::write_process(self.run, &self.process(part), writer)
        })
    }

    /// One thread's three files: flame graph, folded stacks and analysis.
    fn write_thread(
        &self,
        part: &Part<'_>,
        thread: &ThreadProfile,
        role: &str,
        staging: &Staging,
        [svg, folded, analysis]: [PathBuf; 3],
    ) -> anyhow::Result<()> {
        let profile = &self.merged.profile;
        let id = thread.thread.id;
        let caption = Caption {
            title: format!(
                "Wall clock of thread {} ({}), process {}",
                id.tid, profile.names[thread.thread.comm], id.pid
            ),
            subtitle: format!(
                "widths: µs of the {:.3} s that the thread lived while measured; {STATE_COLOURS}",
                thread.lifetime_ns as f64 / 1e9
            ),
        };
        staging.write(&svg, |writer| {
            svg::write(
                profile,
                samples_of(thread),
                &self.options,
                Colours::States,
                &caption,
                writer,
            )
        })?;
        staging.write(&folded, |writer| {
            folded::write_samples(profile, samples_of(thread), &self.options, writer).map(drop)
        })?;
        let row = Row {
            profile,
            thread,
            role,
        };
        staging.write(&analysis, |writer| {
            report::write_thread(self.run, &part.command, &row, writer)
        })
    }

    fn process<'a>(&'a self, part: &'a Part<'a>) -> Process<'a> {
        part.process(self.merged, self.thread_files)
    }

    fn placed(&self, part: &Part<'_>, folder: &Path, names: &Names) -> Placed {
        let count = self.thread_files.min(part.threads.len());
        let mut lines = vec![
            ("Flame graph", folder.join("combined.svg")),
            ("Folded stacks", folder.join("combined.folded")),
            ("Analysis", folder.join(analysis_name(names))),
        ];
        if count > 0 {
            lines.push((
                if count < part.threads.len() {
                    "Some threads"
                } else {
                    "Each thread"
                },
                folder.join("thread_<TID>_<role>{.svg,.folded,_analysis.txt}"),
            ));
        }
        Placed { lines }
    }

    fn tell(&self, part: &Part<'_>, placed: &Placed, terminal: &mut dyn Write) -> io::Result<()> {
        tables::write_one(self.run, &self.process(part), terminal)?;
        writeln!(terminal)?;
        placed.tell(terminal)
    }
}

/// The files to name on the terminal.
struct Placed {
    lines: Vec<(&'static str, PathBuf)>,
}

impl Placed {
    fn tell(&self, terminal: &mut dyn Write) -> io::Result<()> {
        for (what, path) in &self.lines {
            writeln!(terminal, "{what:<14} {}", path.display())?;
        }
        Ok(())
    }
}

/// A process's folder among those of others.
fn folder_of(part: &Part<'_>) -> PathBuf {
    PathBuf::from(format!("pid{}", part.pid))
}

/// `<base>_thread_analysis.txt`.
fn analysis_name(names: &Names) -> PathBuf {
    with_ending(Path::new(&names.base), "_thread_analysis.txt")
}

fn samples_of(thread: &ThreadProfile) -> impl Iterator<Item = (Sample, u64)> {
    let stacks = thread.stacks.iter();
    stacks.map(|(sample, weight)| (*sample, weight.value))
}
