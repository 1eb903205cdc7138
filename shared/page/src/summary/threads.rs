//! The tables of programs and threads, with bars.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::{self, Write};

use export::text::numbers::{count, duration, whole_percent};
use report::Split;

use super::bar::{Bar, Legend, Part, Parts, reason_name};
use super::facts::{Facts, ThreadFacts};
use crate::html::Escaped;

/// Maximum rows of threads. The others are one row.
const THREADS: usize = 50;
/// Maximum rows of threads below a table of threads by name.
const THREADS_BELOW: usize = 20;
/// Maximum rows of names.
const NAMES: usize = 20;
/// Maximum names of idle threads.
const IDLE_NAMES: usize = 100;
/// Number of reasons that a row names.
const REASONS: usize = 3;

/// Threads that share a row.
#[derive(Default)]
struct Sum {
    threads: u64,
    processes: BTreeSet<u32>,
    split: Split,
    parts: Parts,
}

impl Sum {
    fn of<'a, 'b: 'a>(threads: impl IntoIterator<Item = &'a ThreadFacts<'b>>) -> Sum {
        let mut sum = Sum::default();
        for thread in threads {
            sum.add(thread);
        }
        sum
    }

    fn add(&mut self, thread: &ThreadFacts<'_>) {
        self.threads += 1;
        self.processes.insert(thread.id.pid);
        self.split = self.split + thread.split;
        self.parts.add(thread);
    }
}

/// Writes the tables.
pub(super) fn write(facts: &Facts<'_>, writer: &mut dyn Write) -> io::Result<()> {
    if facts.threads.is_empty() {
        return Ok(());
    }
    write_patterns(writer)?;
    let (idle, working): (Vec<_>, Vec<_>) =
        facts.threads.iter().partition(|thread| thread.is_idle());
    let is_of_several = facts.processes > 1;
    let limit = if is_of_several {
        write_names(
            facts,
            ["Programs", "program"],
            |thread| thread.process,
            writer,
        )?;
        THREADS_BELOW
    } else if working.len() > THREADS {
        write_names(
            facts,
            ["Threads by name", "name"],
            |thread| thread.name,
            writer,
        )?;
        THREADS_BELOW
    } else {
        THREADS
    };
    let (shown, rest) = working.split_at(limit.min(working.len()));
    let sums: Vec<Sum> = shown.iter().map(|thread| Sum::of([*thread])).collect();
    let mut table = Table::begin(facts, "Threads", "Thread", &sums, writer)?;
    for (thread, sum) in shown.iter().zip(&sums) {
        let process = if is_of_several {
            format!(" of {}", thread.process)
        } else {
            String::new()
        };
        let (pid, tid) = (thread.id.pid, thread.id.tid);
        let ids = if pid == 0 {
            String::new()
        } else {
            format!(" <span class=\"id\">{tid}{}</span>", Escaped(&process))
        };
        let name = format!("{}{ids}", Escaped(thread.name));
        let attributes = format!(" data-pid=\"{pid}\" data-tid=\"{tid}\"");
        table.row(&attributes, &name, sum)?;
    }
    if !rest.is_empty() {
        let name = count(rest.len() as u64, "more thread");
        table.row("", &name, &Sum::of(rest.iter().copied()))?;
    }
    if !idle.is_empty() {
        table.folded("idle thread", &idle)?;
    }
    let kernel: Vec<&ThreadFacts<'_>> = facts.kernel_threads.iter().collect();
    if !kernel.is_empty() {
        table.folded("thread of the kernel", &kernel)?;
    }
    table.end()
}

/// Writes the pattern that fills runnable time, so that it differs in more than its colour.
fn write_patterns(writer: &mut dyn Write) -> io::Result<()> {
    writer.write_all(
        b"<svg class=\"patterns\" width=\"0\" height=\"0\" aria-hidden=\"true\"><defs>\
          <pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">\
          <rect class=\"hatch-paper\" width=\"6\" height=\"6\"/>\
          <path class=\"hatch-line\" d=\"M0 6 6 0M-1 1 1-1M5 7 7 5\"/></pattern></defs></svg>\n",
    )
}

/// Writes a table with a row for each name that threads share.
fn write_names(
    facts: &Facts<'_>,
    [heading, noun]: [&str; 2],
    name_of: for<'a> fn(&ThreadFacts<'a>) -> &'a str,
    writer: &mut dyn Write,
) -> io::Result<()> {
    let mut names: BTreeMap<&str, Sum> = BTreeMap::new();
    for thread in &facts.threads {
        names.entry(name_of(thread)).or_default().add(thread);
    }
    let mut names: Vec<(&str, Sum)> = names.into_iter().collect();
    names.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.split.work()));
    let rest = names.split_off(NAMES.min(names.len()));
    let (names, sums): (Vec<&str>, Vec<Sum>) = names.into_iter().unzip();
    let mut table = Table::begin(facts, heading, "Name", &sums, writer)?;
    for (name, sum) in names.iter().zip(&sums) {
        let number = match (sum.processes.len(), sum.threads) {
            (1, 1) => String::new(),
            (1, threads) => format!(" <span class=\"id\">{threads} threads</span>"),
            (processes, _) => format!(" <span class=\"id\">{processes} processes</span>"),
        };
        table.row("", &format!("{}{number}", Escaped(name)), sum)?;
    }
    if !rest.is_empty() {
        let names: HashSet<&str> = rest.iter().map(|(name, _)| *name).collect();
        let threads = facts.threads.iter();
        let threads = threads.filter(|thread| names.contains(name_of(thread)));
        let name = count(rest.len() as u64, &format!("more {noun}"));
        table.row("", &name, &Sum::of(threads))?;
    }
    table.end()
}

/// A table with a bar in each row.
struct Table<'a> {
    facts: &'a Facts<'a>,
    writer: &'a mut dyn Write,
    /// Time of the longest bar.
    most: u64,
    /// Parts that occur, for the legend.
    parts: BTreeSet<Part>,
}

impl<'a> Table<'a> {
    /// Begins a table. `sums` are the rows that have bars of a common scale.
    fn begin(
        facts: &'a Facts<'a>,
        heading: &str,
        first: &str,
        sums: &[Sum],
        writer: &'a mut dyn Write,
    ) -> io::Result<Table<'a>> {
        let amount = if facts.event.is_some() {
            "Events"
        } else {
            "With work"
        };
        write!(
            writer,
            "<h2>{heading}</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{heading}\">\n\
             <table class=\"bars\">\n\
             <caption>Bars show time that was not idle, on one scale; shares are of the time from \
             start to end.</caption>\n\
             <thead><tr><th scope=\"col\">{first}</th><th scope=\"col\">Not idle</th>\
             <th scope=\"col\" class=\"number\">{amount}</th>\
             <th scope=\"col\" class=\"number\">Running</th>\
             <th scope=\"col\" class=\"number\">Waiting for a CPU</th>\
             <th scope=\"col\">Blocked</th><th scope=\"col\" class=\"number\">Idle</th></tr></thead>\n<tbody>\n"
        )?;
        let most = sums.iter().map(|sum| sum.parts.whole()).max();
        Ok(Table {
            facts,
            writer,
            most: most.unwrap_or(0),
            parts: BTreeSet::new(),
        })
    }

    /// Writes a row. `name` is HTML.
    fn row(&mut self, attributes: &str, name: &str, sum: &Sum) -> io::Result<()> {
        let split = &sum.split;
        let whole = split.whole();
        let share = |time| whole_percent(time, whole);
        self.parts.extend(sum.parts.parts().map(|(part, _)| part));
        let bar = Bar {
            facts: self.facts,
            parts: &sum.parts,
            // A row that sums up others can be longer than they are, and then fills its cell.
            most: self.most.max(sum.parts.whole()),
        };
        writeln!(
            self.writer,
            "<tr{attributes}><th scope=\"row\">{name}</th><td>{bar}</td>\
             <td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td>\
             <td>{}</td><td class=\"number\">{}</td></tr>",
            self.facts.amount(split.work()),
            share(split.running),
            share(split.runnable),
            Escaped(&blocked(sum)),
            share(split.idle)
        )
    }

    /// Writes a row of threads that are listed on demand.
    fn folded(&mut self, noun: &str, threads: &[&ThreadFacts<'_>]) -> io::Result<()> {
        let sum = Sum::of(threads.iter().copied());
        let number = match noun {
            "thread of the kernel" if threads.len() > 1 => {
                format!("{} threads of the kernel", threads.len())
            }
            noun => count(threads.len() as u64, noun),
        };
        let mut names: BTreeMap<&str, u64> = BTreeMap::new();
        for thread in threads {
            *names.entry(thread.name).or_default() += 1;
        }
        let listed = names.iter().take(IDLE_NAMES).map(|(name, number)| {
            let name = Escaped(name);
            match number {
                1 => format!("{name}"),
                number => format!("{name} × {number}"),
            }
        });
        let mut listed: Vec<String> = listed.collect();
        if names.len() > IDLE_NAMES {
            listed.push(format!("and {} more names", names.len() - IDLE_NAMES));
        }
        let split = &sum.split;
        writeln!(
            self.writer,
            "<tr class=\"folded\"><td colspan=\"7\"><details><summary>{number}: {} running, {} \
             waiting for a CPU, {} blocked, {} idle</summary><p>{}</p></details></td></tr>",
            duration(split.running),
            duration(split.runnable),
            duration(split.waiting.saturating_add(split.unknown)),
            duration(split.idle),
            listed.join(", ")
        )
    }

    fn end(self) -> io::Result<()> {
        let legend = Legend(self.parts.into_iter().collect());
        writeln!(self.writer, "</tbody>\n</table>\n</div>\n{legend}")
    }
}

/// Returns the blocked time of a row, with its largest reasons.
fn blocked(sum: &Sum) -> String {
    let split = &sum.split;
    let whole = split.whole();
    let mut reasons: Vec<(&str, u64)> = (sum.parts.parts())
        .filter_map(|(part, time)| match part {
            Part::Blocked(reason) => Some((reason_name(reason), time)),
            Part::Unknown => Some(("idle or waiting", time)),
            Part::Running | Part::Runnable => None,
        })
        .filter(|(_, time)| u128::from(*time) * 200 >= u128::from(whole))
        .collect();
    reasons.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    let named = reasons.iter().take(REASONS);
    let named: Vec<String> = named
        .map(|(name, time)| format!("{name} {}", whole_percent(*time, whole)))
        .collect();
    if named.is_empty() {
        whole_percent(split.waiting, whole)
    } else {
        named.join(", ")
    }
}
