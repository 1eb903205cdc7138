//! From a merged measurement to files, and what is said of them on the terminal.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::bail;
use export::folded;
use export::report::{self, Process, Row, Run};
use export::svg::{self, Caption, Colours, STATE_COLOURS};
use profile::Sample;
use profile::merge::{Merged, ThreadProfile};

use crate::files::{Names, SINGLE_ENDINGS, role, thread_base, with_ending};
use crate::publish::Staging;

/// How many threads the table on the terminal shows.
const TABLE_ROWS: usize = 20;
/// What the single thread's files are called until they are in their place.
const STAGED: &str = "single";

/// Everything that the files are made of.
pub(crate) struct Results<'a> {
    pub(crate) run: &'a Run,
    pub(crate) merged: &'a Merged,
    /// The command line of each process that was asked for.
    pub(crate) commands: &'a BTreeMap<u32, String>,
    /// How many threads may have files of their own.
    pub(crate) thread_files: usize,
}

/// What was seen of one process.
struct Part<'a> {
    pid: u32,
    command: &'a str,
    threads: Vec<(&'a ThreadProfile, String)>,
}

impl Results<'_> {
    /// Writes all files and puts them in their place; then tells of them.
    ///
    /// # Errors
    /// No thread was seen, or a file cannot be written: then there is none.
    pub(crate) fn write(&self, names: &Names, terminal: &mut dyn Write) -> anyhow::Result<()> {
        let mut parts = self.parts();
        let one_process = self.commands.len() == 1;
        match &mut parts[..] {
            [] => bail!("no thread was seen; did the process end before measuring began?"),
            [part] if one_process && part.threads.len() == 1 => {
                let placed = self.write_single(part, names)?;
                self.tell(part, &placed, terminal)?;
            }
            parts => {
                let staging = Staging::new(&names.folder)?;
                for part in &mut *parts {
                    let inside = if one_process {
                        PathBuf::new()
                    } else {
                        let inside = PathBuf::from(format!("pid{}", part.pid));
                        staging.make_folder(&inside)?;
                        inside
                    };
                    self.write_part(part, &staging, &inside, names)?;
                }
                staging.put_folder(&names.folder)?;
                for part in parts {
                    let folder = if one_process {
                        names.folder.clone()
                    } else {
                        names.folder.join(format!("pid{}", part.pid))
                    };
                    self.tell(part, &self.placed(part, &folder, names), terminal)?;
                }
            }
        }
        Ok(())
    }

    /// The threads by process; processes of which nothing was seen are left out.
    fn parts(&self) -> Vec<Part<'_>> {
        let mut parts: BTreeMap<u32, Part<'_>> = BTreeMap::new();
        for thread in &self.merged.threads {
            let pid = thread.thread.id.pid;
            let part = parts.entry(pid).or_insert_with(|| Part {
                pid,
                command: self.commands.get(&pid).map_or("", String::as_str),
                threads: Vec::new(),
            });
            let comm = &self.merged.profile.names[thread.thread.comm];
            part.threads.push((thread, role(thread.thread.id, comm)));
        }
        parts.into_values().collect()
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
        // Those that lived longest first; threads alive throughout are equal in
        // that, and the busier go first.
        part.threads.sort_by_key(|(thread, _)| {
            Reverse((
                thread.lifetime_ns,
                busy_ns(thread),
                Reverse(thread.thread.id),
            ))
        });
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
            let options = folded::Options {
                per_thread: true,
                ..folded::Options::default()
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
                Colours::States,
                &caption,
                writer,
            )
        })?;
        part.threads.sort_by_key(|(thread, _)| {
            Reverse((
                busy_ns(thread),
                thread.lifetime_ns,
                Reverse(thread.thread.id),
            ))
        });
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
                Colours::States,
                &caption,
                writer,
            )
        })?;
        staging.write(&folded, |writer| {
            let options = folded::Options::default();
            folded::write_samples(profile, samples_of(thread), &options, writer).map(drop)
        })?;
        let row = Row {
            profile,
            thread,
            role,
        };
        staging.write(&analysis, |writer| {
            report::write_thread(self.run, part.command, &row, writer)
        })
    }

    fn process<'a>(&'a self, part: &'a Part<'_>) -> Process<'a> {
        let rows = part.threads.iter();
        let profile = &self.merged.profile;
        Process {
            pid: part.pid,
            command: part.command,
            threads: rows
                .map(|(thread, role)| Row {
                    profile,
                    thread,
                    role,
                })
                .collect(),
            with_files: self.thread_files.min(part.threads.len()),
        }
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
        report::write_table(self.run, &self.process(part), TABLE_ROWS, terminal)?;
        writeln!(terminal)?;
        for (what, path) in &placed.lines {
            writeln!(terminal, "{what:<14} {}", path.display())?;
        }
        Ok(())
    }
}

/// The files to name on the terminal.
struct Placed {
    lines: Vec<(&'static str, PathBuf)>,
}

/// `<base>_thread_analysis.txt`.
fn analysis_name(names: &Names) -> PathBuf {
    with_ending(Path::new(&names.base), "_thread_analysis.txt")
}

fn samples_of(thread: &ThreadProfile) -> impl Iterator<Item = (Sample, u64)> {
    thread.stacks.iter().copied()
}

/// Time in which the thread had something to do.
fn busy_ns(thread: &ThreadProfile) -> u64 {
    thread.thread.clock.running_ns + thread.thread.clock.runnable_ns
}
