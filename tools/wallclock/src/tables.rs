//! The processes of a run, and the report of them on the terminal.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};

use profile::merge::{Merged, ThreadProfile};
use profile::{Name, Text};
use report::overview::{self, Look};
use report::{Known, Process, Row, Run};

use crate::roles::role;

/// Maximum processes in each part of the report. The busiest processes come first.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum processes listed, beside their ancestors.
    pub processes: usize,
    /// Maximum processes whose threads are listed.
    pub tables: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            processes: 40,
            tables: 5,
        }
    }
}

/// One process with its threads.
pub(crate) struct Part<'a> {
    pub(crate) pid: u32,
    pub(crate) command: String,
    /// Name of the first thread.
    pub(crate) name: Name,
    /// Threads with their roles.
    pub(crate) threads: Vec<(&'a ThreadProfile, String)>,
}

/// Groups the threads by process, each thread with its role. Processes without threads are left
/// out.
pub(crate) fn parts<'a>(merged: &'a Merged, known: &Known<'_>) -> Vec<Part<'a>> {
    let mut parts: BTreeMap<u32, Part<'_>> = BTreeMap::new();
    for thread in &merged.threads {
        let id = thread.thread.id;
        let part = parts.entry(id.pid).or_insert_with(|| Part {
            pid: id.pid,
            command: String::new(),
            name: thread.thread.comm,
            threads: Vec::new(),
        });
        if id.tid == id.pid {
            part.name = thread.thread.comm;
        }
        let comm = &merged.profile.names[thread.thread.comm];
        part.threads.push((thread, role(id, comm)));
    }
    let mut parts: Vec<Part<'_>> = parts.into_values().collect();
    for part in &mut parts {
        part.command = known.command_line(part.pid, &merged.profile.names[part.name]);
    }
    parts
}

impl<'a> Part<'a> {
    /// Returns the process for reports; the first `thread_files` threads have files of their own.
    pub(crate) fn process(&self, merged: &'a Merged, thread_files: usize) -> Process<'_> {
        let rows = self.threads.iter();
        Process {
            pid: self.pid,
            name: &merged.profile.names[self.name],
            command: &self.command,
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

    /// Returns the time in which the threads ran or waited for a CPU, in ns.
    fn busy_ns(&self) -> u64 {
        self.threads.iter().map(|(thread, _)| busy_ns(thread)).sum()
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

    /// Puts the longest-lived threads first; among equally long-lived threads the busier one.
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

/// Returns the time in which the thread ran or waited for a CPU, in ns.
fn busy_ns(thread: &ThreadProfile) -> u64 {
    thread.thread.clock.running_ns + thread.thread.clock.runnable_ns
}

/// Returns the IDs of the busiest processes, at most `most`.
pub(crate) fn busiest(parts: &[Part<'_>], most: usize) -> HashSet<u32> {
    let mut busy: Vec<_> = parts
        .iter()
        .map(|part| (Reverse(part.busy_ns()), part.pid))
        .collect();
    busy.sort_unstable();
    busy.truncate(most);
    busy.into_iter().map(|(_, pid)| pid).collect()
}

/// Writes a line that names the place of the threads that the report does not list.
pub(crate) fn write_rest(rest: usize, place: &str, writer: &mut dyn Write) -> io::Result<()> {
    match rest {
        0 => Ok(()),
        1 => writeln!(writer, "Threads of 1 more process: {place}."),
        _ => writeln!(writer, "Threads of {rest} more processes: {place}."),
    }
}

/// Writes the report of one process, or of several processes with the threads of the busiest.
///
/// `before` has the command lines that were read before measuring. `place` names the place of the
/// threads that are not listed.
///
/// # Errors
/// The errors of the writer.
pub fn write(
    run: &Run,
    merged: &Merged,
    before: &BTreeMap<u32, Text>,
    limits: Limits,
    look: Look,
    place: &str,
    writer: &mut dyn Write,
) -> io::Result<()> {
    let known = Known::new(&merged.profile, before);
    let mut parts = parts(merged, &known);
    write_parts(run, merged, &known, &mut parts, limits, look, writer)?;
    let rest = parts.len().saturating_sub(limits.tables);
    if rest > 0 && parts.len() > 1 && limits.tables > 0 {
        writeln!(writer)?;
        write_rest(rest, place, writer)?;
    }
    Ok(())
}

/// Writes the report of these processes.
pub(crate) fn write_parts(
    run: &Run,
    merged: &Merged,
    known: &Known<'_>,
    parts: &mut [Part<'_>],
    limits: Limits,
    look: Look,
    writer: &mut dyn Write,
) -> io::Result<()> {
    for part in parts.iter_mut() {
        part.busiest_first();
    }
    let processes: Vec<Process<'_>> = parts
        .iter()
        .map(|part| part.process(merged, part.threads.len()))
        .collect();
    if let [process] = &processes[..]
        && !run.is_of_machine
    {
        return overview::write_process(run, process, true, look, writer);
    }
    overview::write_processes(run, known, &processes, limits.processes, look, writer)?;
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|at| (Reverse(parts[*at].busy_ns()), parts[*at].pid));
    for process in (order.into_iter().take(limits.tables)).map(|at| &processes[at]) {
        writeln!(writer)?;
        overview::write_process(run, process, false, look, writer)?;
    }
    Ok(())
}
