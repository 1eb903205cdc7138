//! The table of the most expensive things.

use std::io::{self, Write};

use export::text::numbers::{duration, is_nearly_all, whole_percent};
use profile::State;

use super::answer::cpu_users;
use super::facts::{Cause, Facts};
use crate::html::Escaped;

/// Number of rows.
const LISTED: usize = 5;
/// Number of rows of time that may be idle.
const UNKNOWN_LISTED: usize = 3;
/// Minimum share, in per cent, of a place where threads waited for a CPU.
const LEAST_PLACE: u64 = 20;
/// Maximum characters of a place.
const PLACE: usize = 90;

/// Writes the most expensive things, and those that may be idle.
pub(super) fn write(facts: &Facts<'_>, writer: &mut dyn Write) -> io::Result<()> {
    let work = facts.split.work();
    let whole = match facts.event {
        None => format!("{} with work", facts.amount(work)),
        Some(event) => format!("{} {event}", facts.amount(work)),
    };
    write_table(
        facts,
        "The most expensive things",
        &format!("Shares of {whole}."),
        (&facts.causes, LISTED, work),
        writer,
    )?;
    let unknown = facts.split.unknown;
    if u128::from(unknown) * 100 < u128::from(work) {
        return Ok(());
    }
    write_table(
        facts,
        "Blocked, idle or waiting",
        &format!(
            "Shares of {} in which nothing tells whether the threads had work.",
            facts.amount(unknown)
        ),
        (&facts.unknown, UNKNOWN_LISTED, unknown),
        writer,
    )
}

fn write_table(
    facts: &Facts<'_>,
    heading: &str,
    caption: &str,
    (causes, listed, whole): (&[Cause<'_>], usize, u64),
    writer: &mut dyn Write,
) -> io::Result<()> {
    if causes.is_empty() {
        return Ok(());
    }
    let amount = if facts.event.is_some() {
        "Events"
    } else {
        "Time"
    };
    write!(
        writer,
        "<h2>{heading}</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{heading}\">\n\
         <table class=\"causes\">\n\
         <caption>{}</caption>\n\
         <thead><tr><th scope=\"col\">What</th><th scope=\"col\" class=\"number\">{amount}</th>\
         <th scope=\"col\" class=\"number\">Share</th><th scope=\"col\" class=\"number\">Waits</th>\
         <th scope=\"col\" class=\"number\">Longest</th><th scope=\"col\">Where</th>\
         <th scope=\"col\">Ended by</th></tr></thead>\n<tbody>\n",
        Escaped(caption)
    )?;
    // The first row stays however small it is.
    let counts = |cause: &&Cause<'_>| u128::from(cause.group.time) * 200 >= u128::from(whole);
    let counted = causes.iter().skip(1).take_while(counts).count() + 1;
    let listed = listed.min(counted);
    for cause in causes.iter().take(listed) {
        write_row(facts, cause, whole, writer)?;
    }
    writer.write_all(b"</tbody>\n")?;
    if causes.len() > listed {
        let others = &causes[listed..];
        let time = others.iter().map(|cause| cause.group.time);
        let time = time.fold(0, u64::saturating_add);
        writeln!(
            writer,
            "<tfoot><tr><th scope=\"row\">{} more</th><td class=\"number\">{}</td>\
             <td class=\"number\">{}</td><td colspan=\"4\"></td></tr></tfoot>",
            others.len(),
            facts.amount(time),
            whole_percent(time, whole)
        )?;
    }
    writer.write_all(b"</table>\n</div>\n")
}

fn write_row(
    facts: &Facts<'_>,
    cause: &Cause<'_>,
    whole: u64,
    writer: &mut dyn Write,
) -> io::Result<()> {
    let group = &cause.group;
    let (state, what) = match cause.state {
        State::Running if group.resource.is_empty() => ("running", "running, not sampled".into()),
        State::Running => (
            "running",
            format!("running <code>{}</code>", Escaped(&group.resource)),
        ),
        State::Runnable if group.resource.is_empty() => ("runnable", "waiting for a CPU".into()),
        State::Runnable => (
            "runnable",
            format!("waiting for a CPU: {}", Escaped(&group.resource)),
        ),
        State::Blocked if group.kind.is_empty() => ("blocked", "blocked".into()),
        State::Blocked if group.resource.is_empty() => {
            ("blocked", Escaped(&group.kind).to_string())
        }
        State::Blocked => (
            "blocked",
            format!(
                "{} <code>{}</code>",
                Escaped(&group.kind),
                Escaped(&group.resource)
            ),
        ),
    };
    let (waits, longest) = match group.waits {
        0 => (String::new(), String::new()),
        waits => (waits.to_string(), duration(group.longest())),
    };
    // All threads wait for CPUs, and the share of one place can tell nothing.
    let tells = |time| {
        cause.state != State::Runnable
            || u128::from(time) * 100 >= u128::from(group.time) * u128::from(LEAST_PLACE)
    };
    let place = group.stack().filter(|(_, time)| tells(*time));
    let place = place.map(|(_, time)| {
        let share = if is_nearly_all(time, group.time) {
            String::new()
        } else {
            format!("{} in ", whole_percent(time, group.time))
        };
        format!("{share}<code>{}</code>", Escaped(&group.place(PLACE)))
    });
    let ended = match cause.state {
        State::Runnable if group.resource.is_empty() => cpu_users(facts),
        State::Blocked => (group.others(PLACE)).map(|others| Escaped(&others).to_string()),
        _ => None,
    };
    writeln!(
        writer,
        "<tr data-state=\"{state}\"><th scope=\"row\">{what}</th><td class=\"number\">{}</td>\
         <td class=\"number\">{}</td><td class=\"number\">{waits}</td>\
         <td class=\"number\">{longest}</td><td>{}</td><td>{}</td></tr>",
        facts.amount(group.time),
        whole_percent(group.time, whole),
        place.unwrap_or_default(),
        ended.unwrap_or_default()
    )
}
