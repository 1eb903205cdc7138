//! From a merged measurement to files, and what is said of them on the terminal.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::bail;
use export::report::{self, Process, Row, Run};
use export::svg::{self, Caption, Colours, STATE_COLOURS};
use export::{Options, folded};
use profile::Sample;
use profile::merge::{Merged, ThreadProfile};

use crate::files::{Names, SINGLE_ENDINGS, thread_base, with_ending};
use crate::publish::Staging;
use crate::tables::{self, Part, parts};

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

impl Results<'_> {
    /// Writes all files and puts them in their place; then tells of them.
    ///
    /// # Errors
    /// No thread was seen, or a file cannot be written: then there is none.
    pub(crate) fn write(&self, names: &Names, terminal: &mut dyn Write) -> anyhow::Result<()> {
        let mut parts = parts(self.merged, self.commands);
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
                ..Options::default()
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
                Colours::States,
                &caption,
                writer,
            )
        })?;
        staging.write(&folded, |writer| {
            let options = Options::default();
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
    let stacks = thread.stacks.iter();
    stacks.map(|(sample, weight)| (*sample, weight.value))
}
