//! Tables of threads and processes: the parts of their time in per cent and as bars.

use std::io;

use export::text::cut::{cut, cut_middle};
use export::text::numbers::duration;

use super::page::{BAR, Page};
use crate::waits::split::{Split, apportion};

/// Minimum width for the column of lives, in columns of the terminal.
const WITH_LIVES: usize = 100;
/// Names of the parts of a [`Split`], with the widths of their columns.
const PARTS: [(&str, usize); 5] = [
    ("running", 8),
    ("runnable", 9),
    ("waiting", 8),
    ("idle", 7),
    ("unknown", 8),
];
/// Maximum idle rows shown if all rows are idle.
const IDLE_SHOWN: usize = 3;

/// One row of a table.
pub(super) struct Entry {
    /// ID of a thread or process; empty if the row stands for several.
    pub(super) id: String,
    /// Name of a thread, command line of a process.
    pub(super) name: String,
    pub(super) split: Split,
    /// Time from the start to the end in ns; for several threads or processes, the sum.
    pub(super) life: u64,
    /// Number of a process's threads.
    pub(super) threads: Option<usize>,
}

impl Entry {
    /// Adds up several entries.
    pub(super) fn of_several(name: String, entries: &[&Entry]) -> Entry {
        let threads = entries.iter().map(|entry| entry.threads);
        Entry {
            id: String::new(),
            name,
            split: entries.iter().map(|entry| entry.split).sum(),
            life: (entries.iter().map(|entry| entry.life)).fold(0, u64::saturating_add),
            threads: threads.sum(),
        }
    }
}

/// Entries that have rows of their own, and the other entries, which share one row.
pub(super) struct Choice<'a> {
    pub(super) shown: Vec<&'a Entry>,
    pub(super) others: Vec<&'a Entry>,
}

/// Chooses the entries that have rows of their own: at most `limit` entries with most work that are
/// not idle.
pub(super) fn choose(entries: &[Entry], limit: usize) -> Choice<'_> {
    let mut by_work: Vec<&Entry> = entries.iter().collect();
    by_work.sort_by_key(|entry| std::cmp::Reverse(entry.split.work()));
    let (idle, mut shown): (Vec<_>, Vec<_>) =
        by_work.into_iter().partition(|entry| entry.split.is_idle());
    let beyond = shown.split_off(limit.min(shown.len()));
    let mut others = [beyond, idle].concat();
    // A single other entry has its own row, because a row "1 other" would tell less. A table has at
    // least one row.
    let is_short = others.len() <= if shown.is_empty() { IDLE_SHOWN } else { 1 };
    if is_short && shown.len() + others.len() <= limit {
        shown.append(&mut others);
    }
    Choice { shown, others }
}

/// Heading of a table, and nouns for its rows.
pub(super) struct Titles {
    /// Heading above the rows, in capitals.
    pub(super) heading: &'static str,
    /// Name of one row.
    pub(super) noun: &'static str,
    /// Name of several rows.
    pub(super) plural: &'static str,
}

/// Writes a table: the shown entries, a row for the others, and a row for all.
pub(super) fn write(titles: &Titles, choice: &Choice<'_>, page: &mut Page<'_>) -> io::Result<()> {
    let Choice { shown, others } = choice;
    let several = |number: usize, is_rest: bool| match (is_rest, number) {
        (true, 1) => "1 other".to_owned(),
        (true, _) => format!("{number} others"),
        (false, 1) => format!("1 {}", titles.noun),
        (false, _) => format!("{number} {}", titles.plural),
    };
    let mut rows: Vec<Entry> = Vec::new();
    if !others.is_empty() {
        let name = several(others.len(), !shown.is_empty());
        rows.push(Entry::of_several(name, others));
    }
    if shown.len() + others.len() > 1 && !shown.is_empty() {
        let all: Vec<&Entry> = shown.iter().chain(others).copied().collect();
        let name = several(all.len(), false);
        rows.push(Entry::of_several(name, &all));
    }
    let rows = || shown.iter().copied().chain(&rows);
    let of_processes = rows().any(|row| row.threads.is_some());
    let table = Table::new(rows(), of_processes, page);
    table.write_heading(titles.heading, page)?;
    for row in rows() {
        table.write(row, page)?;
    }
    Ok(())
}

/// Width of the column of lives, in characters.
const LIFE: usize = 9;
/// Width of a name that always fits, and of the longest name, in characters.
const COMM: usize = 16;
const LONGEST_NAME: usize = 40;

/// Widths of a table.
struct Table {
    has_lives: bool,
    of_processes: bool,
    /// Width before the bars, in characters: the ID and, in a table of threads, the name.
    before: usize,
    id: usize,
}

impl Table {
    fn new<'a>(
        rows: impl Iterator<Item = &'a Entry>,
        of_processes: bool,
        page: &Page<'_>,
    ) -> Table {
        let length = |text: &str| text.chars().count();
        let (single, several): (Vec<&Entry>, Vec<&Entry>) =
            rows.partition(|row| !row.id.is_empty());
        let id = single.iter().map(|row| length(&row.id)).max();
        let id = id.unwrap_or(0).clamp(6, 10);
        let name = single.iter().map(|row| length(&row.name)).max();
        let has_lives = page.width() >= WITH_LIVES;
        // Names have the width that the other columns leave.
        let columns: usize = PARTS.iter().map(|(_, width)| width).sum();
        let lives = if has_lives { LIFE } else { 0 };
        let bar = if page.has_bars() { BAR + 1 } else { 0 };
        let rest = id + 3 + bar + lives + columns;
        let most = page.width().saturating_sub(rest).clamp(COMM, LONGEST_NAME);
        let name = name.unwrap_or(0).min(most);
        // Names of rows without an ID begin in the column of IDs.
        let several = several.iter().map(|row| length(&row.name)).max();
        let several = several.unwrap_or(0).min(20);
        Table {
            has_lives,
            of_processes,
            before: if of_processes {
                id
            } else {
                (id + 1 + name).max(several)
            },
            id,
        }
    }

    fn write_heading(&self, heading: &str, page: &mut Page<'_>) -> io::Result<()> {
        let mut line = format!("{heading:<width$}", width = self.before + 2);
        if page.has_bars() {
            line.push_str(&" ".repeat(BAR + 1));
        }
        if self.has_lives {
            line.push_str(&format!("{:>LIFE$}", "life"));
        }
        for (name, width) in PARTS {
            line.push_str(&format!("{name:>width$}"));
        }
        if self.of_processes {
            line.push_str(&format!("{:>9}  command", "threads"));
        }
        page.line(&line)
    }

    fn write(&self, row: &Entry, page: &mut Page<'_>) -> io::Result<()> {
        let (width, id) = (self.before, self.id);
        let before = match (self.of_processes, row.id.is_empty()) {
            (true, _) => format!("{:>id$}", row.id),
            (false, true) => cut(&row.name, width).into_owned(),
            (false, false) => {
                let room = width.saturating_sub(id + 1);
                format!("{:>id$} {}", row.id, cut_middle(&row.name, room))
            }
        };
        let before = format!(" {before:<width$} ");
        let mut after = String::new();
        if self.has_lives {
            after.push_str(&format!("{:>LIFE$}", duration(row.life)));
        }
        let shares = apportion(row.split.parts(), 100);
        let is_known = row.split.whole() > 0;
        for (share, (_, width)) in shares.into_iter().zip(PARTS) {
            let share = if is_known {
                format!("{share} %")
            } else {
                "-".to_owned()
            };
            after.push_str(&format!("{share:>width$}"));
        }
        if let Some(threads) = row.threads {
            after.push_str(&format!("{threads:>9}  {}", row.name));
        }
        page.bar(&before, &row.split, &after)
    }
}
