//! What is told on the terminal: a table of each process's threads.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

use export::report::{self, Process, Row, Run};
use profile::merge::{Merged, ThreadProfile};

use crate::files::role;

/// How many threads a table shows.
const ROWS: usize = 20;

/// What was seen of one process.
pub(crate) struct Part<'a> {
    pub(crate) pid: u32,
    pub(crate) command: &'a str,
    pub(crate) threads: Vec<(&'a ThreadProfile, String)>,
}

/// The threads by process, each with what it is for; processes of which nothing was seen
/// are left out.
pub(crate) fn parts<'a>(merged: &'a Merged, commands: &'a BTreeMap<u32, String>) -> Vec<Part<'a>> {
    let mut parts: BTreeMap<u32, Part<'_>> = BTreeMap::new();
    for thread in &merged.threads {
        let pid = thread.thread.id.pid;
        let part = parts.entry(pid).or_insert_with(|| Part {
            pid,
            command: commands.get(&pid).map_or("", String::as_str),
            threads: Vec::new(),
        });
        let comm = &merged.profile.names[thread.thread.comm];
        part.threads.push((thread, role(thread.thread.id, comm)));
    }
    parts.into_values().collect()
}

impl<'a> Part<'a> {
    /// For reports; so many threads have files of their own.
    pub(crate) fn process(&self, merged: &'a Merged, thread_files: usize) -> Process<'_> {
        let rows = self.threads.iter();
        Process {
            pid: self.pid,
            command: self.command,
            threads: rows
                .map(|(thread, role)| Row {
                    profile: &merged.profile,
                    thread,
                    role,
                })
                .collect(),
            with_files: thread_files.min(self.threads.len()),
        }
    }

    /// Puts the busiest threads first.
    pub(crate) fn busiest_first(&mut self) {
        self.threads.sort_by_key(|(thread, _)| {
            Reverse((
                busy_ns(thread),
                thread.lifetime_ns,
                Reverse(thread.thread.id),
            ))
        });
    }

    /// Puts those first that lived longest. Threads alive throughout are equal in that,
    /// and the busier go first.
    pub(crate) fn longest_lived_first(&mut self) {
        self.threads.sort_by_key(|(thread, _)| {
            Reverse((
                thread.lifetime_ns,
                busy_ns(thread),
                Reverse(thread.thread.id),
            ))
        });
    }
}

/// Time in which the thread had something to do.
fn busy_ns(thread: &ThreadProfile) -> u64 {
    thread.thread.clock.running_ns + thread.thread.clock.runnable_ns
}

/// Writes the table of a process.
pub(crate) fn write_one(
    run: &Run,
    process: &Process<'_>,
    writer: &mut dyn Write,
) -> io::Result<()> {
    report::write_table(run, process, ROWS, writer)
}

/// Writes the table of each process, with a line between them. `commands` are their
/// command lines.
///
/// # Errors
/// Those of the writer.
pub fn write(
    run: &Run,
    merged: &Merged,
    commands: &BTreeMap<u32, String>,
    writer: &mut dyn Write,
) -> io::Result<()> {
    for (index, mut part) in parts(merged, commands).into_iter().enumerate() {
        if index > 0 {
            writeln!(writer)?;
        }
        part.busiest_first();
        let count = part.threads.len();
        write_one(run, &part.process(merged, count), writer)?;
    }
    Ok(())
}
