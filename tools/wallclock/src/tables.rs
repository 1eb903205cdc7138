//! What is told on the terminal: a table of the processes, and one of the threads of each.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};

use export::report::{self, Cpus, Known, Process, Row, Run};
use profile::Name;
use profile::merge::{Merged, ThreadProfile};

use crate::roles::role;

/// How many threads a table shows.
const ROWS: usize = 20;

/// How much is told of many processes: of those that kept the CPUs busiest.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many are listed, beside their ancestors.
    pub processes: usize,
    /// How many have tables of their threads.
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

/// What was seen of one process.
pub(crate) struct Part<'a> {
    pub(crate) pid: u32,
    pub(crate) command: String,
    /// What its first thread is called.
    pub(crate) name: Name,
    pub(crate) threads: Vec<(&'a ThreadProfile, String)>,
}

/// The threads by process, each with what it is for; processes of which nothing was seen
/// are left out.
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
    /// For reports; so many threads have files of their own.
    pub(crate) fn process(&self, merged: &'a Merged, thread_files: usize) -> Process<'_> {
        let rows = self.threads.iter();
        Process {
            pid: self.pid,
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

    /// Time in which its threads had something to do.
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

/// The IDs of the processes that had most to do, so many at most.
pub(crate) fn busiest(parts: &[Part<'_>], most: usize) -> HashSet<u32> {
    let mut busy: Vec<_> = parts
        .iter()
        .map(|part| (Reverse(part.busy_ns()), part.pid))
        .collect();
    busy.sort_unstable();
    busy.truncate(most);
    busy.into_iter().map(|(_, pid)| pid).collect()
}

/// Writes the table of all processes.
pub(crate) fn write_all(
    run: &Run,
    merged: &Merged,
    known: &Known<'_>,
    parts: &[Part<'_>],
    limits: Limits,
    writer: &mut dyn Write,
) -> io::Result<()> {
    let processes: Vec<_> = parts.iter().map(|part| part.process(merged, 0)).collect();
    report::write_processes(run, known, &processes, limits.processes, writer)
}

/// Writes what the CPUs did, behind the table of all processes.
pub(crate) fn write_cpus(run: &Run, cpus: &Cpus, writer: &mut dyn Write) -> io::Result<()> {
    writeln!(writer)?;
    report::write_cpus(run, cpus, writer)
}

/// Writes the table of a process.
pub(crate) fn write_one(
    run: &Run,
    process: &Process<'_>,
    writer: &mut dyn Write,
) -> io::Result<()> {
    report::write_table(run, process, ROWS, writer)
}

/// Says where the threads are of processes that have no tables.
pub(crate) fn write_rest(rest: usize, place: &str, writer: &mut dyn Write) -> io::Result<()> {
    match rest {
        0 => Ok(()),
        1 => writeln!(writer, "(the threads of 1 more process: {place})"),
        _ => writeln!(writer, "(the threads of {rest} more processes: {place})"),
    }
}

/// Writes the table of the processes, if there are several, and one of the threads of each,
/// with a line between them. `before` has the command lines that were read before measuring,
/// and `place` says where the rest is.
///
/// # Errors
/// Those of the writer.
pub fn write(
    run: &Run,
    merged: &Merged,
    before: &BTreeMap<u32, String>,
    limits: Limits,
    place: &str,
    writer: &mut dyn Write,
) -> io::Result<()> {
    let known = Known::new(&merged.profile, before);
    let mut parts = parts(merged, &known);
    if parts.len() > 1 {
        write_all(run, merged, &known, &parts, limits, writer)?;
    }
    let shown = busiest(&parts, limits.tables);
    let rest = parts.len() - shown.len();
    let several = parts.len() > 1;
    parts.retain(|part| shown.contains(&part.pid));
    for part in &mut parts {
        if several {
            writeln!(writer)?;
        }
        part.busiest_first();
        let count = part.threads.len();
        write_one(run, &part.process(merged, count), writer)?;
    }
    if rest > 0 {
        writeln!(writer)?;
    }
    write_rest(rest, place, writer)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use profile::merge::merge;
    use profile::{Clock, Profile, Thread, ThreadId, Unit};

    use super::*;

    /// Processes of one thread each, with so many seconds running in ten.
    fn merged(processes: &[(u32, u64)]) -> Merged {
        let second = 1_000_000_000;
        let mut times = Profile::new(Unit::Nanoseconds);
        for &(pid, running) in processes {
            let comm = times.names.text(&format!("name-{pid}"));
            let clock = Clock {
                ended_ns: 10 * second,
                running_ns: running * second,
                blocked_ns: (10 - running) * second,
                ..Clock::default()
            };
            let id = ThreadId { pid, tid: pid };
            times.threads.push(Thread { id, comm, clock });
            times.processes.push(profile::Process {
                pid,
                parent: 1,
                ..profile::Process::default()
            });
        }
        merge(&Profile::new(Unit::Samples), &times)
    }

    fn written(merged: &Merged, before: &[(u32, &str)], limits: Limits) -> String {
        let before = before
            .iter()
            .map(|(pid, text)| (*pid, (*text).to_owned()))
            .collect();
        let mut bytes = Vec::new();
        let run = Run::of(merged);
        write(&run, merged, &before, limits, "in a file", &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn of_one_process_there_is_its_table_alone() {
        let text = written(&merged(&[(7, 3)]), &[(7, "serve")], Limits::default());
        assert!(text.starts_with("Process 7: serve\n"), "{text}");
        assert!(!text.ends_with("\n\n"), "{text:?}");
        assert!(
            !text.contains("in a file") && !text.contains("parent"),
            "{text}"
        );
    }

    #[test]
    fn of_many_the_busiest_have_tables_and_the_rest_is_told() {
        let merged = merged(&[(1, 0), (2, 9), (3, 1), (4, 5), (5, 0)]);
        let limits = Limits {
            processes: 2,
            tables: 2,
        };
        let text = written(&merged, &[(1, "init")], limits);
        assert!(text.starts_with("5 processes\n"), "{text}");
        let paragraphs = text.split("\n\n").filter_map(|text| text.lines().next());
        let tables: Vec<&str> = paragraphs
            .filter(|line| line.starts_with("Process "))
            .collect();
        // What they were forked from has a command line.
        assert_eq!(tables, ["Process 2: init", "Process 4: init"]);
        assert!(text.contains("  2 other processes\n"), "{text}");
        assert!(
            text.ends_with("\n\n(the threads of 3 more processes: in a file)\n"),
            "{text}"
        );
        let limits = Limits {
            tables: 4,
            ..limits
        };
        let text = written(&merged, &[], limits);
        assert!(
            text.ends_with("\n\n(the threads of 1 more process: in a file)\n"),
            "{text}"
        );
    }

    #[test]
    fn threads_come_in_the_order_that_is_asked_for() {
        let mut merged = merged(&[(7, 1)]);
        // Runnable is busy, too.
        for (tid, running_ns, runnable_ns, lifetime_ns) in [
            (8, 0, 5_000_000_000, 6_000_000_000),
            (9, 3_000_000_000, 0, 10_000_000_000),
        ] {
            let mut other = merged.threads[0].clone();
            other.thread.id.tid = tid;
            other.thread.clock.running_ns = running_ns;
            other.thread.clock.runnable_ns = runnable_ns;
            other.lifetime_ns = lifetime_ns;
            merged.threads.push(other);
        }
        let before = BTreeMap::new();
        let known = Known::new(&merged.profile, &before);
        let mut parts = parts(&merged, &known);
        let order = |part: &Part<'_>| -> Vec<u32> {
            let threads = part.threads.iter();
            threads.map(|(thread, _)| thread.thread.id.tid).collect()
        };
        parts[0].busiest_first();
        assert_eq!(order(&parts[0]), [8, 9, 7]);
        parts[0].longest_lived_first();
        assert_eq!(order(&parts[0]), [9, 7, 8]);
    }

    #[test]
    fn a_process_is_called_as_its_first_thread() {
        let mut merged = merged(&[(7, 3)]);
        let mut other = merged.threads[0].clone();
        other.thread.id.tid = 6;
        other.thread.comm = merged.profile.names.text("worker");
        merged.threads.insert(0, other);
        let before = BTreeMap::new();
        let known = Known::new(&merged.profile, &before);
        let parts = parts(&merged, &known);
        assert_eq!(&*merged.profile.names[parts[0].name], "name-7");
        assert_eq!(parts[0].command, "[name-7]");
    }
}
