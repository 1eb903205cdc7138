//! Writes a merged measurement to files, and the report to the terminal.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::bail;
use export::svg::{self, Caption, Colours, STATE_COLOURS};
use export::{Options, folded};
use profile::merge::{Merged, ThreadProfile};
use profile::{Sample, Text};
use report::overview::Look;
use report::{Known, Process, Row, Run};

use super::files::{FILES, MACHINE_ENDINGS, Names, PAGE, SINGLE_ENDINGS, thread_base, with_ending};
use super::publish::Staging;
use crate::tables::{self, Limits, Part, busiest, parts};

/// Temporary name of files until they get their prefix.
const STAGED: &str = "staged";
/// Maximum number of processes with files of their own: the busiest.
const PROCESS_FILES: usize = 100;

/// Data for the files.
pub(crate) struct Results<'a> {
    pub(crate) run: &'a Run,
    pub(crate) merged: &'a Merged,
    /// Command lines of the target processes, by PID.
    pub(crate) commands: &'a BTreeMap<u32, Text>,
    /// Maximum number of threads per process with files of their own.
    pub(crate) thread_files: usize,
    /// Maximum numbers of listed processes and tables.
    pub(crate) limits: Limits,
    /// Look of the report on the terminal.
    pub(crate) look: Look,
    /// Options for stacks.
    pub(crate) options: Options,
}

impl Results<'_> {
    /// Writes all files, puts them in their place, and writes the report.
    ///
    /// # Errors
    /// Returns an error if no thread was seen or a file cannot be written. In either case it leaves
    /// no files.
    pub(crate) fn write(&self, names: &Names, terminal: &mut dyn Write) -> anyhow::Result<()> {
        let known = Known::new(&self.merged.profile, self.commands);
        let mut parts = parts(self.merged, &known);
        // With several target processes, each process with a thread in the profile has a folder,
        // even if it is the only such process.
        let is_alone = self.commands.len() <= 1;
        match &mut parts[..] {
            [] => bail!("no thread was seen; did the process end before measuring began?"),
            parts if self.run.is_of_machine => {
                self.write_machine(&known, parts, names, terminal)?
            }
            [part] if is_alone && part.threads.len() == 1 => {
                let placed = self.write_single(part, names)?;
                self.report(&known, &mut parts, terminal)?;
                placed.write(terminal)?;
            }
            [part] if is_alone => {
                let staging = Staging::new(&names.folder)?;
                self.write_page(&staging, Path::new(PAGE))?;
                staging.make_folder(Path::new(FILES))?;
                self.write_part(part, &staging, Path::new(FILES), names)?;
                staging.put_folder(&names.folder)?;
                let placed = self.placed(part, names);
                self.report(&known, &mut parts, terminal)?;
                placed.write(terminal)?;
            }
            parts => self.write_several(&known, parts, names, terminal)?,
        }
        Ok(())
    }

    /// Writes the files of a whole machine, all processes together.
    fn write_machine(
        &self,
        known: &Known<'_>,
        parts: &mut [Part<'_>],
        names: &Names,
        terminal: &mut dyn Write,
    ) -> anyhow::Result<()> {
        let staging = Staging::new(&names.prefix)?;
        let paths = MACHINE_ENDINGS.map(|ending| PathBuf::from(format!("{STAGED}{ending}")));
        let [page, svg, folded, report] = paths;
        self.write_page(&staging, &page)?;
        self.write_together(known, parts, &staging, [svg, folded, report])?;
        let placed = staging.put_files(STAGED, &names.prefix, &MACHINE_ENDINGS)?;
        self.report(known, parts, terminal)?;
        Placed::new("all processes", placed).write(terminal)?;
        Ok(())
    }

    /// Writes the files of several processes: all processes together, and a folder for each of the
    /// busiest.
    fn write_several(
        &self,
        known: &Known<'_>,
        parts: &mut [Part<'_>],
        names: &Names,
        terminal: &mut dyn Write,
    ) -> anyhow::Result<()> {
        let staging = Staging::new(&names.folder)?;
        self.write_page(&staging, Path::new(PAGE))?;
        let files = Path::new(FILES);
        staging.make_folder(files)?;
        let together = [
            files.join("combined.svg"),
            files.join("combined.folded"),
            with_ending(&files.join(&names.base), "_processes.txt"),
        ];
        self.write_together(known, parts, &staging, together.clone())?;
        let with_files = busiest(parts, PROCESS_FILES);
        for part in parts.iter_mut() {
            if with_files.contains(&part.pid) {
                let inside = files.join(folder_name(part));
                staging.make_folder(&inside)?;
                self.write_part(part, &staging, &inside, names)?;
            }
        }
        staging.put_folder(&names.folder)?;

        self.report(known, parts, terminal)?;
        let whose = if with_files.len() < parts.len() {
            format!("of {} of them", with_files.len())
        } else {
            "of each".to_owned()
        };
        let placed = [PathBuf::from(PAGE)].into_iter().chain(together);
        let placed = placed.map(|path| names.folder.join(path)).collect();
        let mut placed = Placed::new("all processes", placed);
        let folders = names.folder.join(files).join("pid<PID>");
        placed
            .others
            .push(format!("{}/  ({whose})", folders.display()));
        placed.write(terminal)?;
        Ok(())
    }

    /// Writes the report on the terminal.
    fn report(
        &self,
        known: &Known<'_>,
        parts: &mut [Part<'_>],
        terminal: &mut dyn Write,
    ) -> io::Result<()> {
        // A machine has too many threads to list them in tables.
        let limits = if self.run.is_of_machine {
            Limits {
                tables: 0,
                ..self.limits
            }
        } else {
            self.limits
        };
        let Results {
            run, merged, look, ..
        } = *self;
        tables::write_parts(run, merged, known, parts, limits, look, terminal)?;
        writeln!(terminal)?;
        if parts.len() > 1 && limits.tables > 0 {
            let rest = parts.len().saturating_sub(limits.tables);
            if rest > 0 {
                tables::write_rest(rest, "in their folders", terminal)?;
                writeln!(terminal)?;
            }
        }
        Ok(())
    }

    /// Writes the flame graph, the folded stacks and the report of all processes together.
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
        let whose = if self.run.is_of_machine {
            "the whole machine".to_owned()
        } else {
            format!("{} processes", parts.len())
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
            if !self.run.is_of_machine && parts.len() > PROCESS_FILES {
                writeln!(
                    writer,
                    "Files of their own: the {PROCESS_FILES} processes that kept the CPUs busiest."
                )?;
            }
            Ok(())
        })
    }

    /// Writes the analysis of all processes, and of the CPUs of a machine.
    fn write_report(
        &self,
        known: &Known<'_>,
        parts: &[Part<'_>],
        writer: &mut dyn Write,
    ) -> io::Result<()> {
        let processes: Vec<_> = parts
            .iter()
            .map(|part| part.process(self.merged, 0))
            .collect();
        report::write_processes(self.run, known, &processes, self.limits.processes, writer)?;
        match &self.run.cpu_times {
            Some(cpus) if self.run.is_of_machine => {
                writeln!(writer)?;
                report::write_cpus(self.run, cpus, writer)
            }
            _ => Ok(()),
        }
    }

    /// Writes the page, which has every thread.
    fn write_page(&self, staging: &Staging, path: &Path) -> anyhow::Result<()> {
        let profile = self.merged.clone().into_profile();
        staging.write(path, |writer| page::write(&profile, writer))
    }

    fn write_single(&self, part: &Part<'_>, names: &Names) -> anyhow::Result<Placed> {
        let staging = Staging::new(&names.prefix)?;
        if let Some((thread, role)) = part.threads.first() {
            let paths = SINGLE_ENDINGS.map(|ending| PathBuf::from(format!("{STAGED}{ending}")));
            let [page, svg, folded, analysis] = paths;
            self.write_page(&staging, &page)?;
            self.write_thread(part, thread, role, &staging, [svg, folded, analysis])?;
        }
        let placed = staging.put_files(STAGED, &names.prefix, &SINGLE_ENDINGS)?;
        Ok(Placed::new("its stacks in every state", placed))
    }

    /// Writes one process's files into the folder `inside` of the staging folder.
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

    /// Writes one thread's three files: flame graph, folded stacks and analysis.
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

    fn placed(&self, part: &Part<'_>, names: &Names) -> Placed {
        let count = self.thread_files.min(part.threads.len());
        let folder = names.folder.join(FILES);
        let files = [
            names.folder.join(PAGE),
            folder.join("combined.svg"),
            folder.join("combined.folded"),
            folder.join(analysis_name(names)),
        ];
        let mut placed = Placed::new("all threads", files.to_vec());
        if count > 0 {
            let whose = if count < part.threads.len() {
                format!("of {count} of {} threads", part.threads.len())
            } else {
                "of each thread".to_owned()
            };
            let pattern = folder.join("thread_<TID>_<role>{.svg,.folded,_analysis.txt}");
            placed
                .others
                .push(format!("{}  ({whose})", pattern.display()));
        }
        placed
    }
}

/// Files that the terminal output names.
struct Placed {
    page: PathBuf,
    /// Flame graph of what `content` describes.
    graph: PathBuf,
    content: &'static str,
    /// Descriptions of the other files.
    others: Vec<String>,
}

impl Placed {
    /// Takes the files: the page, the flame graph, and the others.
    fn new(content: &'static str, files: Vec<PathBuf>) -> Placed {
        let mut files = files.into_iter();
        Placed {
            page: files.next().unwrap_or_default(),
            graph: files.next().unwrap_or_default(),
            content,
            others: files.map(|path| path.display().to_string()).collect(),
        }
    }

    fn write(&self, terminal: &mut dyn Write) -> io::Result<()> {
        writeln!(
            terminal,
            "Open  {}  (a page for the browser)",
            self.page.display()
        )?;
        writeln!(
            terminal,
            "Also  {}  (flame graph: {})",
            self.graph.display(),
            self.content
        )?;
        for file in &self.others {
            writeln!(terminal, "      {file}")?;
        }
        Ok(())
    }
}

/// Returns the name of a process's folder.
fn folder_name(part: &Part<'_>) -> PathBuf {
    PathBuf::from(format!("pid{}", part.pid))
}

/// Returns `<base>_thread_analysis.txt`.
fn analysis_name(names: &Names) -> PathBuf {
    with_ending(Path::new(&names.base), "_thread_analysis.txt")
}

fn samples_of(thread: &ThreadProfile) -> impl Iterator<Item = (Sample, u64)> {
    let stacks = thread.stacks.iter();
    stacks.map(|(sample, weight)| (*sample, weight.value))
}
