//! The analysis of one thread.

use std::io::{self, Write};

use export::text::frames::frame_name;
use export::text::numbers::{count, coverage, percent, seconds};
use export::text::options::Options;
use profile::folded::DELIMITER;
use profile::{Stack, State};

use super::waits::{objects, reasons, work};
use super::{Row, Run, summary};
use crate::settings::settings;

/// Number of heaviest stacks listed.
const HEAVIEST: usize = 10;

/// Writes one thread's times, heaviest stacks and losses.
///
/// # Errors
/// Returns the errors of `writer`.
pub fn write(run: &Run, command: &str, row: &Row<'_>, writer: &mut dyn Write) -> io::Result<()> {
    let Row {
        profile, thread, ..
    } = *row;
    let (id, clock) = (thread.thread.id, thread.thread.clock);
    writeln!(
        writer,
        "Wall-clock analysis of thread {} ({})",
        id.tid, profile.names[thread.thread.comm]
    )?;
    writeln!(writer, "Process: {}   Role: {}", id.pid, row.role)?;
    writeln!(writer, "Command: {command}")?;
    writeln!(writer, "{}", settings(run))?;
    writeln!(writer)?;
    work::write(std::iter::once(row), false, writer)?;
    writeln!(writer)?;

    let life = thread.lifetime_ns;
    writeln!(writer, "{:<10} {:>12} {:>7}", "", "seconds", "%")?;
    for (name, time, meaning) in [
        ("life", life, "inside the measured time"),
        ("running", clock.running_ns, "on a CPU"),
        (
            "runnable",
            clock.runnable_ns,
            "ready to run, waiting for a CPU",
        ),
        (
            "blocked",
            clock.blocked_ns,
            "waiting for anything else: locks, I/O, timers",
        ),
    ] {
        let share = percent(time, life);
        writeln!(
            writer,
            "{name:<10} {:>12.6} {share:>7}  {meaning}",
            time as f64 / 1e9
        )?;
    }
    writeln!(
        writer,
        "{:<10} {:>12.6} {:>7}  coverage of the flame graph\n",
        "accounted",
        thread.accounted_ns() as f64 / 1e9,
        coverage(thread.coverage())
    )?;
    writeln!(
        writer,
        "{}, {} voluntary and {} involuntary context switches, {}",
        count(thread.samples, "sample"),
        clock.voluntary,
        clock.involuntary,
        count(thread.stack_times(profile).len() as u64, "different stack")
    )?;
    reasons::write(std::iter::once(row), writer)?;
    objects::write(std::iter::once(row), writer)?;
    write_longest(row, writer)?;
    write_heaviest(row, writer)?;
    writeln!(writer)?;
    summary::write_unseen(run, std::iter::once(thread), writer)?;
    summary::write_losses(run, writer)
}

/// Writes the longest blocked stack in full, root first.
fn write_longest(row: &Row<'_>, writer: &mut dyn Write) -> io::Result<()> {
    let Some(longest) = row.thread.longest_blocked(row.profile) else {
        let kept = match row.thread.thread.clock.blocked_ns {
            0 => "Never blocked.",
            _ => "No stack was kept of its blocked time.",
        };
        return writeln!(writer, "\n{kept}");
    };
    writeln!(
        writer,
        "\nLongest blocked stack: {} s, {} % of all blocked time (outermost function first)",
        seconds(longest.time_ns),
        percent(longest.time_ns, row.thread.thread.clock.blocked_ns)
    )?;
    let options = Options::default();
    let Stack { user, kernel } = longest.sample.stack;
    let name = |frame| frame_name(row.profile, frame, &options);
    let [user, kernel] = [user, kernel].map(|part| row.profile.frames_of(part).map(name));
    let (mut user, mut kernel) = (user.peekable(), kernel.peekable());
    let is_delimited = user.peek().is_some() && kernel.peek().is_some();
    let names = user.chain(is_delimited.then(|| DELIMITER.to_owned()));
    for name in names.chain(kernel) {
        writeln!(writer, "    {name}")?;
    }
    Ok(())
}

fn write_heaviest(row: &Row<'_>, writer: &mut dyn Write) -> io::Result<()> {
    let mut stacks = row.thread.stack_times(row.profile);
    // The sort is stable: equal times keep the order of states and stacks.
    stacks.sort_by_key(|stack| std::cmp::Reverse(stack.time_ns));
    writeln!(
        writer,
        "\nHeaviest stacks (seconds, ± one standard error where samples are in it, % of life, state; \
         innermost function first)"
    )?;
    for stack in stacks.into_iter().take(HEAVIEST) {
        let error = stack.error_ns.map(|error| seconds(error as u64));
        let state = match stack.sample.state {
            Some(State::Running) => "running",
            Some(State::Runnable) => "runnable",
            Some(State::Blocked) | None => "blocked",
        };
        writeln!(
            writer,
            "{:>9} {:>7} {:>6}  {state:<8}  {}",
            seconds(stack.time_ns),
            error.map_or("-".to_owned(), |error| format!("± {error}")),
            percent(stack.time_ns, row.thread.lifetime_ns),
            reasons::describe_stack(row.profile, &stack)
        )?;
    }
    Ok(())
}
