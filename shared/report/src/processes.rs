//! The table of processes as a tree: the times of each process, and its longest blocked stack.

use std::collections::HashSet;
use std::io::{self, Write};

use export::text::cut::cut;
use export::text::numbers::{count, seconds};
use profile::merge::ThreadProfile;

use super::columns::{EXPLAINED, Sums};
use super::known::Known;
use super::tree::{Listed, Node, busiest, listed};
use super::waits::{objects, reasons, work};
use super::{Process, Run, summary};
use crate::settings::settings;

/// Maximum number of kernel threads listed.
const KERNEL_THREADS: usize = 10;
/// Maximum characters of a command line.
const COMMAND: usize = 60;
/// Maximum depth of indentation.
const DEEPEST: usize = 16;
/// Widths of the columns except the last. Wider cells push the rest to the right.
const WIDTHS: [usize; 11] = [8, 8, 9, 9, 5, 9, 5, 10, 5, 7, 7];

/// Names of the columns. Times are in seconds. Shares are in per cent of the lives of the process's
/// threads.
const COLUMNS: [&str; 12] = [
    "PID", "parent", "life", "running", "%", "runnable", "%", "blocked", "%", "covered", "threads",
    "command",
];

/// Writes the busiest `limit` processes with their ancestors as a tree, and the other processes as
/// one row. Kernel threads and losses follow. `processes` differ in their PIDs.
///
/// # Errors
/// Returns the errors of `writer`.
pub fn write(
    run: &Run,
    known: &Known<'_>,
    processes: &[Process<'_>],
    limit: usize,
    writer: &mut dyn Write,
) -> io::Result<()> {
    let (of_kernel, of_users): (Vec<_>, Vec<_>) =
        (processes.iter()).partition(|process| known.is_kernel_thread(process.pid));
    writeln!(writer, "{}", count(of_users.len() as u64, "process"))?;
    writeln!(writer, "{}", settings(run))?;
    let users = Table::new(known, of_users);
    let rows = users.processes.iter().flat_map(|process| &process.threads);
    writeln!(writer)?;
    work::write(rows.clone(), users.processes.len() > 1, writer)?;
    writeln!(writer)?;

    let tree = listed(&users.nodes, limit);
    users.write(&tree, "process", writer)?;
    let kernel = Table::new(known, of_kernel);
    let flat: Vec<Listed> = (busiest(&kernel.nodes, KERNEL_THREADS).into_iter())
        .map(|place| Listed { place, depth: 0 })
        .collect();
    if !flat.is_empty() {
        writeln!(writer, "\nThe kernel's own threads\n")?;
        kernel.write(&flat, "kernel thread", writer)?;
    }
    writeln!(writer, "{EXPLAINED}")?;
    reasons::write(rows.clone(), writer)?;
    objects::write(rows, writer)?;
    users.write_longest(&tree, writer)?;
    writeln!(writer)?;
    let threads = processes.iter().flat_map(|process| &process.threads);
    summary::write_unseen(run, threads.map(|row| row.thread), writer)?;
    summary::write_losses(run, writer)
}

/// A table of some of the processes.
struct Table<'a> {
    known: &'a Known<'a>,
    processes: Vec<&'a Process<'a>>,
    nodes: Vec<Node>,
}

impl<'a> Table<'a> {
    fn new(known: &'a Known<'a>, processes: Vec<&'a Process<'a>>) -> Table<'a> {
        let nodes = processes.iter().map(|process| {
            let (started_ns, _) = life(process);
            Node {
                pid: process.pid,
                parent: known.parent(process.pid),
                busy_ns: busy_ns(process),
                started_ns,
                start_ticks: known.start_ticks(process.pid),
            }
        });
        let nodes = nodes.collect();
        Table {
            known,
            processes,
            nodes,
        }
    }

    /// Writes the listed rows, a row for the other processes, and a row for all.
    fn write(&self, listed: &[Listed], noun: &str, writer: &mut dyn Write) -> io::Result<()> {
        write_line(&COLUMNS.map(str::to_owned), writer)?;
        for process in listed {
            write_line(&self.cells(process), writer)?;
        }
        let shown: HashSet<usize> = listed.iter().map(|process| process.place).collect();
        let others: Vec<_> = (self.processes.iter().zip(0..))
            .filter(|(_, place)| !shown.contains(place))
            .map(|(process, _)| *process)
            .collect();
        if !others.is_empty() {
            let label = count(others.len() as u64, &format!("other {noun}"));
            write_line(&cells_of_all("-", &others, label), writer)?;
        }
        let label = count(self.processes.len() as u64, noun);
        write_line(&cells_of_all("all", &self.processes, label), writer)
    }

    fn cells(&self, Listed { place, depth }: &Listed) -> [String; 12] {
        let process = self.processes[*place];
        let (started_ns, ended_ns) = life(process);
        let mut command = "  ".repeat((*depth).min(DEEPEST));
        command.push_str(&cut(process.command, COMMAND));
        let lives = self.known.lives(process.pid).max(leader_lives(process));
        if lives > 1 {
            command.push_str(&format!(" ({lives} processes, one after another)"));
        }
        row(
            process.pid.to_string(),
            self.nodes[*place].parent.to_string(),
            seconds(ended_ns.saturating_sub(started_ns)),
            &[process],
            command,
        )
    }

    /// Writes the longest blocked stack of each process that has one.
    fn write_longest(&self, listed: &[Listed], writer: &mut dyn Write) -> io::Result<()> {
        let mut begun = false;
        for process in listed {
            let process = self.processes[process.place];
            let longest = process.threads.iter().filter_map(|row| {
                let longest = row.thread.longest_blocked(row.profile)?;
                Some((row, longest))
            });
            let Some((row, longest)) =
                longest.max_by_key(|(_, longest)| (!longest.is_idle(), longest.time_ns))
            else {
                continue;
            };
            if !begun {
                begun = true;
                writeln!(
                    writer,
                    "\nLongest blocked stack of each process (seconds; innermost function first)"
                )?;
            }
            writeln!(
                writer,
                "{:>8} {:<16} {:>9}  {}",
                process.pid,
                row.profile.names[row.thread.thread.comm],
                seconds(longest.time_ns),
                reasons::describe_stack(row.profile, &longest)
            )?;
        }
        Ok(())
    }
}

/// Returns the time that a process's threads were running or runnable, in ns.
fn busy_ns(process: &Process<'_>) -> u64 {
    let clocks = process.threads.iter().map(|row| row.thread.thread.clock);
    let busy = clocks.map(|clock| clock.running_ns.saturating_add(clock.runnable_ns));
    busy.fold(0, u64::saturating_add)
}

/// Returns the earliest start and the latest end of a process's threads, in ns of CLOCK_MONOTONIC.
pub(super) fn life(process: &Process<'_>) -> (u64, u64) {
    let clocks = process.threads.iter().map(|row| row.thread.thread.clock);
    let started = clocks.clone().map(|clock| clock.started_ns).min();
    let ended = clocks.map(|clock| clock.ended_ns).max();
    (started.unwrap_or(0), ended.unwrap_or(0))
}

/// Returns the number of processes that had the PID, by the accounts of their first threads. A
/// thread that executes a program takes over the TID of the first thread, which runs until then.
/// The thread is not another process.
pub(super) fn leader_lives(process: &Process<'_>) -> u64 {
    let mut threads = process.threads.iter().map(|row| row.thread);
    let leader = threads.find(|thread| thread.thread.id.tid == process.pid);
    let one_after_another =
        |leader: &&ThreadProfile| leader.lifetime_ns <= leader.thread.clock.lifetime_ns();
    leader
        .filter(one_after_another)
        .map_or(1, |leader| leader.lives)
}

/// Returns the cells of a row with the sums of several processes.
fn cells_of_all(pid: &str, processes: &[&Process<'_>], label: String) -> [String; 12] {
    let nothing = || "-".to_owned();
    row(pid.to_owned(), nothing(), nothing(), processes, label)
}

fn row(
    pid: String,
    parent: String,
    life: String,
    processes: &[&Process<'_>],
    command: String,
) -> [String; 12] {
    let threads = processes.iter().flat_map(|process| &process.threads);
    let sums = Sums::over(threads.clone().map(|row| row.thread));
    let [running, ran, runnable, waited, blocked, slept, covered] = sums.state_cells();
    let threads = threads.count().to_string();
    [
        pid, parent, life, running, ran, runnable, waited, blocked, slept, covered, threads,
        command,
    ]
}

fn write_line(cells: &[String; 12], writer: &mut dyn Write) -> io::Result<()> {
    let [figures @ .., command] = cells;
    let mut line = String::new();
    for (cell, width) in figures.iter().zip(WIDTHS) {
        line.push_str(&format!("{cell:>width$} "));
    }
    writeln!(writer, "{line} {command}")
}
