//! Turns of event loops: their number and lengths, and the functions that filled the longest ones.

use std::collections::BTreeMap;
use std::io;

use export::text::numbers::{count, duration};
use profile::{Profile, Stack};

use super::page::Page;
use crate::place::{join_names, own_functions, place};
use crate::{EventLoop, Process, Row, Run, Turn};

/// Maximum number of functions of the longest turns.
const LISTED: usize = 6;
/// Maximum characters of the text by which native stacks are told apart.
const NAME_CHARACTERS: usize = 80;
/// Width of the figures of a function, in characters.
const FIGURES: usize = 36;
/// Function of Go's scheduler that waits in epoll. Any thread of Go may call it, so its calls are no
/// loop of the thread.
const GO_POLLER: &str = "runtime.netpoll";

/// Writes the event loops of some processes. Writes nothing if none was measured.
pub(super) fn write<'a>(
    run: &Run,
    processes: impl IntoIterator<Item = &'a Process<'a>>,
    page: &mut Page<'_>,
) -> io::Result<()> {
    let processes: Vec<&Process<'_>> = processes.into_iter().collect();
    for event_loop in &run.event_loops {
        let process = processes
            .iter()
            .find(|process| process.pid == event_loop.thread.pid);
        let row = process.and_then(|process| {
            let mut rows = process.threads.iter();
            rows.find(|row| row.thread.thread.id == event_loop.thread)
        });
        if let (Some(process), Some(row)) = (process, row)
            && !is_go(row)
            && { run.goroutines.iter() }.all(|it| it.pid != process.pid)
        {
            write_loop(event_loop, process, row, processes.len() > 1, page)?;
        }
    }
    Ok(())
}

fn write_loop(
    event_loop: &EventLoop,
    process: &Process<'_>,
    row: &Row<'_>,
    of_several: bool,
    page: &mut Page<'_>,
) -> io::Result<()> {
    page.blank()?;
    let subject = if of_several {
        format!("EVENT LOOP of {} (PID {})", process.name, process.pid)
    } else {
        "EVENT LOOP".to_owned()
    };
    if event_loop.lost > 0 {
        let lost = count(event_loop.lost, "wait");
        return page.line(&format!("{subject}  not shown: {lost} lost"));
    }
    let life_ns = row.thread.lifetime_ns;
    let share = |time: u64| format!("{:.1} %", time as f64 / life_ns.max(1) as f64 * 100.0);
    let busy_ns = life_ns.saturating_sub(event_loop.waited_ns);
    page.line(&format!(
        "{subject}  {} busy ({} of {}), {} with events late",
        share(busy_ns),
        duration(busy_ns),
        duration(life_ns),
        share(event_loop.late_ns),
    ))?;
    let Some(longest) = event_loop.longest.first() else {
        return page.line("     no turn");
    };
    page.line(&format!(
        "     {}: median {}, p99 {}, longest {}",
        count(event_loop.turns, "turn"),
        duration(event_loop.median_ns),
        duration(event_loop.p99_ns),
        duration(longest.length_ns),
    ))?;
    let long = EventLoop::LENGTHS_NS.iter().zip(event_loop.long);
    let long = long.map(|(length, turns)| format!("{turns} from {} on", duration(*length)));
    page.line(&format!("     {}", long.collect::<Vec<_>>().join(", ")))?;
    write_longest(&event_loop.longest, row.profile, page)
}

/// Turns with the same function.
#[derive(Default)]
struct Alike<'a> {
    turns: u64,
    total_ns: u64,
    /// The longest turn, and its stack.
    longest: Option<(&'a Turn, Option<Stack>)>,
}

fn write_longest(turns: &[Turn], profile: &Profile, page: &mut Page<'_>) -> io::Result<()> {
    let has_stacks = turns.iter().any(|turn| !turn.stacks.is_empty());
    if !has_stacks {
        return Ok(());
    }
    let mut groups: BTreeMap<Option<String>, Alike<'_>> = BTreeMap::new();
    for turn in turns {
        let found = main_function(turn, profile);
        let (name, stack) = found.unzip();
        let group = groups.entry(name).or_default();
        group.turns += 1;
        group.total_ns = group.total_ns.saturating_add(turn.length_ns);
        // The turns are in the order of their lengths.
        group.longest.get_or_insert((turn, stack));
    }
    let mut groups: Vec<Alike<'_>> = groups.into_values().collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.total_ns));
    let start_ns = profile.meta.window.start_ns;
    let room = page.width() - FIGURES - 1;
    page.blank()?;
    page.line(&format!(
        "{:<room$} {:>9}{:>7}{:>10}{:>10}",
        "LONGEST TURNS, by function", "total", "turns", "longest", "at"
    ))?;
    for group in groups.iter().take(LISTED) {
        let Some((longest, stack)) = group.longest else {
            continue;
        };
        let own = stack.map(|stack| own_functions(profile, stack));
        let name = match (stack, own) {
            (Some(_), Some(own)) if !own.is_empty() => join_names(&own, room - 1),
            (Some(stack), _) => place(profile, stack, room - 1),
            (None, _) => "not seen by a sample".to_owned(),
        };
        page.line(&format!(
            " {name:<width$} {:>9}{:>7}{:>10}{:>10}",
            duration(group.total_ns),
            group.turns,
            duration(longest.length_ns),
            duration(longest.start_ns.saturating_sub(start_ns)),
            width = room - 1,
        ))?;
    }
    Ok(())
}

/// Returns the function with most of a turn's time, and the longest stack of this function. The
/// function is the innermost interpreted one of the program itself, or the innermost of all.
fn main_function(turn: &Turn, profile: &Profile) -> Option<(String, Stack)> {
    /// Time of a function, time of its longest stack, and this stack.
    type Sum = (u64, u64, Stack);
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    for &(stack, time) in &turn.stacks {
        let own = own_functions(profile, stack);
        let name = match own.first() {
            Some(name) => name.clone(),
            None => place(profile, stack, NAME_CHARACTERS),
        };
        let sum = sums.entry(name).or_insert((0, 0, stack));
        sum.0 = sum.0.saturating_add(time);
        if time > sum.1 {
            (sum.1, sum.2) = (time, stack);
        }
    }
    let largest = sums.into_iter().max_by_key(|(_, (time, ..))| *time);
    largest.map(|(name, (_, _, stack))| (name, stack))
}

fn is_go(row: &Row<'_>) -> bool {
    row.thread.stacks.iter().any(|(sample, _)| {
        let mut frames = row.profile.frames_of(sample.stack.user);
        frames.any(|frame| row.profile.name(frame) == GO_POLLER)
    })
}
