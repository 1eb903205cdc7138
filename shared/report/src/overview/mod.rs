//! The report that people read first: the causes that held a program up, the threads or processes,
//! and the places of their waits. The report fits a terminal. The analyses have every figure.

mod blocked;
mod event_loops;
mod explain;
mod goroutines;
mod losses;
mod page;
mod rows;

use std::io::{self, Write};
use std::time::Duration;

use export::text::numbers::{count, duration, whole_percent};
use profile::Ending;
use profile::merge::ThreadProfile;

use super::cpus::CpuUse;
use super::known::Known;
use super::processes::{leader_lives, life};
use super::tree::{Node, listed};
use super::waits::split::Split;
use super::waits::work::Work;
use super::{CommandEnd, Cpu, Process, Run, summary};
use page::Page;
use rows::{Choice, Entry, Titles, choose};

pub use explain::explanation;
pub use page::{Bars, Look};

/// Maximum number of threads with rows of their own.
const THREADS: usize = 20;
/// Maximum number of kernel threads with rows of their own.
const KERNEL_THREADS: usize = 5;
/// Maximum depth of indentation.
const DEEPEST: usize = 8;

/// Writes the report of a process. If `is_alone` is set, it is the only process measured, and its
/// report has the waits, losses and settings. Otherwise the report of all processes has them.
///
/// # Errors
/// Returns the errors of `writer`.
pub fn write_process(
    run: &Run,
    process: &Process<'_>,
    is_alone: bool,
    look: Look,
    writer: &mut dyn Write,
) -> io::Result<()> {
    let mut page = Page::new(look, writer);
    let threads = &process.threads;
    let subject = format!("{} (PID {})", process.name, process.pid);
    let number = count(threads.len() as u64, "thread");
    let first = if is_alone {
        [subject, number].into_iter().chain(settings(run)).collect()
    } else {
        vec![subject, number]
    };
    page.line(&first.join(" · "))?;
    page.blank()?;
    let work = Work::new(threads.iter(), !is_alone);
    for line in work.answer(Some(&cpu_use(run, [process].into_iter()))) {
        page.line(&line)?;
    }
    if let [row] = &threads[..] {
        if is_alone {
            blocked::write_stacks(row, &mut page)?;
            event_loops::write(run, [process], &mut page)?;
            goroutines::write(run, [process], &mut page)?;
        }
    } else {
        page.blank()?;
        let entries: Vec<Entry> = threads
            .iter()
            .map(|row| Entry {
                id: row.thread.thread.id.tid.to_string(),
                name: row.profile.names[row.thread.thread.comm].to_string(),
                split: Split::new(row, !is_alone),
                life: row.thread.lifetime_ns,
                threads: None,
            })
            .collect();
        let titles = Titles {
            heading: "THREADS",
            noun: "thread",
            plural: "threads",
        };
        rows::write(&titles, &choose(&entries, THREADS), &mut page)?;
        if is_alone {
            blocked::write_waits(threads.iter(), false, &mut page)?;
            event_loops::write(run, [process], &mut page)?;
            goroutines::write(run, [process], &mut page)?;
        }
    }
    if !is_alone {
        return Ok(());
    }
    let threads = threads.iter().map(|row| row.thread);
    write_losses(run, threads, &mut page)
}

/// Writes the report of several processes. The `limit` processes with most work that are not idle
/// have rows, with their ancestors, as a tree. The other processes are one row. Kernel threads have
/// a table of their own. `processes` differ in their PIDs.
///
/// # Errors
/// Returns the errors of `writer`.
pub fn write_processes(
    run: &Run,
    known: &Known<'_>,
    processes: &[Process<'_>],
    limit: usize,
    look: Look,
    writer: &mut dyn Write,
) -> io::Result<()> {
    let mut page = Page::new(look, writer);
    let (of_kernel, of_users): (Vec<_>, Vec<_>) =
        (processes.iter()).partition(|process| known.is_kernel_thread(process.pid));
    let of_several = of_users.len() > 1;
    let number = count(of_users.len() as u64, "process");
    let whose = run.is_of_machine.then(|| "the whole machine".to_owned());
    let first: Vec<String> = (whose.into_iter())
        .chain([number])
        .chain(settings(run))
        .collect();
    page.line(&first.join(" · "))?;
    page.blank()?;
    let threads = || of_users.iter().flat_map(|process| &process.threads);
    let work = Work::new(threads(), of_several);
    for line in work.answer(Some(&cpu_use(run, processes.iter()))) {
        page.line(&line)?;
    }
    page.blank()?;
    let entries = entries(&of_users, of_several);
    let titles = Titles {
        heading: "PROCESSES",
        noun: "process",
        plural: "processes",
    };
    let tree = tree(known, &of_users, &entries, limit);
    rows::write(&titles, &tree.choice(), &mut page)?;
    if !of_kernel.is_empty() {
        page.blank()?;
        let entries = entries_of_kernel(&of_kernel);
        let titles = Titles {
            heading: "KERNEL THREADS",
            noun: "kernel thread",
            plural: "kernel threads",
        };
        rows::write(&titles, &choose(&entries, KERNEL_THREADS), &mut page)?;
    }
    write_cpus(run, &mut page)?;
    blocked::write_waits(threads(), of_several, &mut page)?;
    event_loops::write(run, of_users.iter().copied(), &mut page)?;
    goroutines::write(run, of_users.iter().copied(), &mut page)?;
    let threads = processes.iter().flat_map(|process| &process.threads);
    write_losses(run, threads.map(|row| row.thread), &mut page)
}

fn write_losses<'a>(
    run: &Run,
    threads: impl Iterator<Item = &'a ThreadProfile>,
    page: &mut Page<'_>,
) -> io::Result<()> {
    page.blank()?;
    losses::write(run, page)?;
    if page.has_details() {
        let mut details = Vec::new();
        summary::write_unseen(run, threads, &mut details)?;
        summary::write_losses(run, &mut details)?;
        for line in String::from_utf8_lossy(&details).lines() {
            page.line(line)?;
        }
    }
    Ok(())
}

/// Writes the shares of CPU time, in one or two lines.
fn write_cpus(run: &Run, page: &mut Page<'_>) -> io::Result<()> {
    let Some(cpus) = run.cpu_times.as_ref().filter(|_| run.is_of_machine) else {
        return Ok(());
    };
    let length = cpus.length_ns;
    let busy = |cpu: &Cpu| length.saturating_sub(cpu.idle_ns);
    let sum = |part: &dyn Fn(&Cpu) -> u64| cpus.each.iter().map(part).fold(0, u64::saturating_add);
    let whole = length.saturating_mul(cpus.each.len() as u64);
    let share = |time| whole_percent(time, whole);
    page.blank()?;
    page.line(&format!(
        "CPUS  {}: {} busy, {} idle; in interrupts {}, taken by the hypervisor {}",
        cpus.each.len(),
        share(sum(&busy)),
        share(sum(&|cpu| cpu.idle_ns)),
        share(sum(&|cpu| cpu.interrupts_ns)),
        share(sum(&|cpu| cpu.stolen_ns)),
    ))?;
    let busiest = cpus.each.iter().max_by_key(|cpu| busy(cpu));
    let idlest = cpus.each.iter().min_by_key(|cpu| busy(cpu));
    match (busiest, idlest) {
        (Some(busiest), Some(idlest)) if cpus.each.len() > 1 => page.line(&format!(
            "      busiest: CPU {}, {}; idlest: CPU {}, {}",
            busiest.number,
            whole_percent(busy(busiest), length),
            idlest.number,
            whole_percent(busy(idlest), length)
        )),
        _ => Ok(()),
    }
}

/// Computes the use of the CPUs from the processes' names and running times.
fn cpu_use<'a>(run: &Run, processes: impl Iterator<Item = &'a Process<'a>>) -> CpuUse {
    CpuUse::new(
        run,
        processes.map(|process| {
            let ran = process.threads.iter();
            let ran = ran.map(|row| row.thread.thread.clock.running_ns);
            (process.name, ran.fold(0, u64::saturating_add))
        }),
    )
}

fn entries(processes: &[&Process<'_>], of_several: bool) -> Vec<Entry> {
    let entry = |process: &&Process<'_>| {
        let (started_ns, ended_ns) = life(process);
        let threads = process.threads.iter();
        Entry {
            id: process.pid.to_string(),
            name: process.command.to_owned(),
            split: threads.map(|row| Split::new(row, of_several)).sum(),
            life: ended_ns.saturating_sub(started_ns),
            threads: Some(process.threads.len()),
        }
    };
    processes.iter().map(entry).collect()
}

/// Builds the entries of kernel threads, which have no command lines and no children.
fn entries_of_kernel(processes: &[&Process<'_>]) -> Vec<Entry> {
    let mut entries = entries(processes, true);
    for (entry, process) in entries.iter_mut().zip(processes) {
        entry.name = process.name.to_owned();
        entry.threads = None;
    }
    entries
}

/// Processes that have rows, with their ancestors above them, and the other processes.
struct Tree<'a> {
    shown: Vec<Entry>,
    others: Vec<&'a Entry>,
}

impl Tree<'_> {
    fn choice(&self) -> Choice<'_> {
        Choice {
            shown: self.shown.iter().collect(),
            others: self.others.clone(),
        }
    }
}

fn tree<'a>(
    known: &Known<'_>,
    processes: &[&Process<'_>],
    entries: &'a [Entry],
    limit: usize,
) -> Tree<'a> {
    let nodes = processes.iter().zip(entries).map(|(process, entry)| Node {
        pid: process.pid,
        parent: known.parent(process.pid),
        busy_ns: entry.split.work(),
        started_ns: life(process).0,
        start_ticks: known.start_ticks(process.pid),
    });
    let nodes: Vec<Node> = nodes.collect();
    let chosen = choose(entries, limit).shown.len();
    let mut is_shown = vec![false; entries.len()];
    let shown = listed(&nodes, chosen).into_iter().map(|row| {
        is_shown[row.place] = true;
        let (process, entry) = (processes[row.place], &entries[row.place]);
        let indent = "  ".repeat(row.depth.min(DEEPEST));
        let lives = known.lives(process.pid).max(leader_lives(process));
        let lives = match lives {
            0 | 1 => String::new(),
            _ => format!("{lives} × "),
        };
        Entry {
            id: entry.id.clone(),
            name: format!("{indent}{lives}{}", entry.name),
            ..*entry
        }
    });
    let shown = shown.collect();
    let others = entries.iter().zip(is_shown);
    let others = others.filter(|(_, is_shown)| !is_shown);
    Tree {
        shown,
        others: others.map(|(entry, _)| entry).collect(),
    }
}

/// Returns the parts of the first line that come from the run.
fn settings(run: &Run) -> impl Iterator<Item = String> {
    let measured = time(run.measured);
    let asked = if run.requested > run.measured {
        format!(" of {}", time(run.requested))
    } else {
        String::new()
    };
    let ended = match (run.ending, run.command) {
        (Ending::Elapsed, _) => String::new(),
        (Ending::Interrupted, _) => format!("{asked}, ended by the user"),
        (Ending::TargetGone, Some(_)) => String::new(),
        (Ending::TargetGone, None) => format!("{asked}, until every process had ended"),
    };
    let command = run.command.map(|end| match end {
        CommandEnd::Exited(status) => format!("exit status {status}"),
        CommandEnd::Killed(signal) => format!("killed by signal {signal}"),
        CommandEnd::Running => "still running".to_owned(),
    });
    let rate = match run.frequency {
        0 => "no samples".to_owned(),
        frequency => format!("{frequency} Hz"),
    };
    let least = match run.min_block_us {
        0 => "all waits".to_owned(),
        us if us % 1_000 == 0 => format!("waits from {} ms on", us / 1_000),
        us => format!("waits from {us} µs on"),
    };
    let shorter = if run.short_are_sampled {
        ", shorter ones sampled"
    } else {
        ""
    };
    let parts = [
        format!("{measured}{ended}"),
        rate,
        format!("{least}{shorter}"),
    ];
    command.into_iter().chain(parts)
}

fn time(time: Duration) -> String {
    duration(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}
