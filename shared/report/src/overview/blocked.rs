//! Resources that threads were blocked on: a line of figures, the stack, and the threads that held
//! or released the resource.

use std::io;

use export::text::cut::cut_middle;
use export::text::numbers::{duration, whole_percent};
use export::text::waits::short_resource_text;
use profile::{Stack, State};

use super::page::Page;
use crate::Row;
use crate::waits::groups::{Group, Groups};
use crate::waits::split::{Counted, counted};

/// Maximum rows of a list.
const LISTED: usize = 6;
/// Maximum rows of time of unknown idleness.
const UNKNOWN_LISTED: usize = 3;
/// Width of the figures, in characters.
const FIGURES: usize = 34;
/// Indentation of the lines below a row, in characters.
const INDENT: usize = 5;

/// Writes the waits that held threads up, and the waits of unknown idleness. Writes nothing if
/// there are none of either.
pub(super) fn write_waits<'a>(
    rows: impl Iterator<Item = &'a Row<'a>>,
    of_several: bool,
    page: &mut Page<'_>,
) -> io::Result<()> {
    let (mut waiting, mut unknown) = (Groups::new(), Groups::new());
    for row in rows {
        for (sample, weight) in &row.thread.stacks {
            let Some(wait) = row.profile.wait(sample) else {
                continue;
            };
            if sample.state != Some(State::Blocked) {
                continue;
            }
            let groups = match counted(wait, of_several) {
                Counted::Waiting => &mut waiting,
                Counted::Unknown => &mut unknown,
                Counted::Idle => continue,
            };
            // Resources with the same text are merged: connections of one kind, files of one name.
            let resource = wait.resource.map(|id| &row.profile.resources[id]);
            let resource = resource.map(|resource| short_resource_text(row.profile, resource));
            let group = groups.group((wait.kind, resource), || Group::of_wait(row.profile, wait));
            group.add(sample, Some(wait), weight);
        }
    }
    write_groups(
        "WAITS, without idle ones",
        &waiting.into_longest_first(),
        LISTED,
        page,
    )?;
    write_groups(
        "BLOCKED, idle or waiting",
        &unknown.into_longest_first(),
        UNKNOWN_LISTED,
        page,
    )
}

/// Writes the stacks of one thread, in every state.
pub(super) fn write_stacks(row: &Row<'_>, page: &mut Page<'_>) -> io::Result<()> {
    let mut groups = Groups::new();
    for (sample, weight) in &row.thread.stacks {
        let wait = row.profile.wait(sample);
        // Waits that differ only in their wakers are merged. Stacks that differ only in their
        // kernel frames are merged, too.
        let alike = wait.map(|wait| (wait.kind, wait.resource, wait.idleness));
        let Stack { user, kernel } = sample.stack;
        let place = (!user.is_empty()).then_some(user).ok_or(kernel);
        let key = (sample.state, alike, place);
        let group = groups.group(key, || {
            let named = |kind: &str| Group::new(row.profile, kind.to_owned(), String::new(), false);
            match (sample.state, wait) {
                (Some(State::Running), _) => named("running"),
                (Some(State::Runnable), None) => named("waiting for a CPU"),
                (_, None) => named("blocked"),
                (_, Some(wait)) => {
                    let mut group = Group::of_wait(row.profile, wait);
                    if counted(wait, false) == Counted::Idle {
                        group.kind.push_str(" (idle)");
                    }
                    group
                }
            }
        });
        group.add(sample, wait, weight);
    }
    let mut groups = groups.into_longest_first();
    groups.retain(|group| group.time > 0);
    write_groups("STACKS", &groups, LISTED, page)
}

/// Writes a heading, a row for each of the first groups, and one row for the others.
fn write_groups(
    heading: &str,
    groups: &[Group<'_>],
    listed: usize,
    page: &mut Page<'_>,
) -> io::Result<()> {
    if groups.is_empty() {
        return Ok(());
    }
    let whole = groups.iter().map(|group| group.time);
    let whole = whole.fold(0, u64::saturating_add);
    let counts = |group: &&Group<'_>| u128::from(group.time) * 200 >= u128::from(whole);
    let counted = groups.iter().take_while(counts).count();
    // A single remaining group has its own row, because a row "1 more" would tell less.
    let listed = if counted == listed + 1 && groups.len() == counted {
        counted
    } else {
        counted.min(listed)
    };
    let (shown, others) = groups.split_at(listed);
    let kinds = shown.iter().map(|group| group.kind.chars().count());
    let resources = shown.iter().map(|group| group.resource.chars().count());
    let room = page.width() - FIGURES - 1;
    let kind = kinds.max().unwrap_or(0).min(room / 2);
    let name = kind + 2 + resources.max().unwrap_or(0);
    let name = name.max(30).min(room);
    page.blank()?;
    page.line(&format!(
        "{heading:<width$}{:>9}{:>7}{:>8}{:>10}",
        "total",
        "share",
        "waits",
        "longest",
        width = name + 1
    ))?;
    for group in shown {
        let resource = name.saturating_sub(kind + 2);
        let text = format!(
            "{:<kind$}  {}",
            cut_middle(&group.kind, kind),
            cut_middle(&group.resource, resource)
        );
        let waits = (group.waits, group.longest());
        write_figures(&text, name, group.time, whole, waits, page)?;
        let room = page.width() - INDENT;
        page.line_once(&format!("{:INDENT$}{}", "", group.place(room)))?;
        if let Some(others) = group.others(room) {
            page.line_once(&format!("{:INDENT$}{others}", ""))?;
        }
    }
    if others.is_empty() {
        return Ok(());
    }
    let time = others.iter().map(|group| group.time);
    let waits = others.iter().map(|group| group.waits);
    let longest = others.iter().map(|group| group.longest()).max();
    write_figures(
        &format!("{} more", others.len()),
        name,
        time.fold(0, u64::saturating_add),
        whole,
        (waits.fold(0, u64::saturating_add), longest.unwrap_or(0)),
        page,
    )
}

fn write_figures(
    text: &str,
    width: usize,
    time: u64,
    whole: u64,
    (waits, longest): (u64, u64),
    page: &mut Page<'_>,
) -> io::Result<()> {
    let (waits, longest) = match waits {
        0 => (String::new(), String::new()),
        waits => (waits.to_string(), duration(longest)),
    };
    page.line(&format!(
        " {text:<width$}{:>9}{:>7}{waits:>8}{longest:>10}",
        duration(time),
        whole_percent(time, whole),
    ))
}
