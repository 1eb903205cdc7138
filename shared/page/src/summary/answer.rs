//! The answer: a sentence on where the threads' time went, and a line on each large part of it.

use std::fmt::Write;

use export::text::brief::short_name;
use export::text::numbers::{count, is_nearly_all, whole_percent};
use profile::{Reason, State};

use super::facts::{Cause, Facts};
use crate::html::Escaped;

/// Minimum share of the time with work, in per cent, of a state that has a line of its own.
const LEAST: u64 = 10;
/// Minimum share of the time with work, in per cent, of a cause that the answer names.
const LEAST_CAUSE: u64 = 3;
/// Maximum characters of the place where a waker ended a wait.
const PLACE: usize = 60;
/// Maximum programs named as users of the CPUs.
const PROGRAMS: usize = 3;

/// The answer, as HTML.
pub(super) struct Answer {
    pub(super) sentence: String,
    /// Lines on the states and on limits of the answer.
    pub(super) details: Vec<String>,
}

/// Makes the answer.
pub(super) fn answer(facts: &Facts<'_>) -> Answer {
    let threads = facts.threads.len();
    if threads == 0 {
        return Answer {
            sentence: "No thread was seen.".to_owned(),
            details: Vec::new(),
        };
    }
    if let Some(event) = facts.event {
        return of_events(facts, event);
    }
    if !facts.has_clocks {
        return without_clocks(facts);
    }
    let idle = facts.idle_threads();
    let mut sentence = idle_threads(facts, idle);
    let whose = match (threads, threads - idle, idle) {
        (1, _, 1) => "It",
        (1, ..) => "The thread",
        (_, 1, 1..) => "The other",
        (_, working, 1..) if working > 0 => &format!("The other {working}"),
        (_, _, 0) => "They",
        _ => "Together they",
    };
    let work = facts.split.work();
    if !facts.has_reasons && facts.split.unknown > 0 {
        let _ = write!(
            sentence,
            "{whose} ran for {}, waited for a CPU for {} and were blocked for {}; the capture does \
             not say why.",
            facts.amount(facts.split.running),
            facts.amount(facts.split.runnable),
            facts.amount(facts.split.unknown)
        );
        let details = [running(facts), runnable(facts)].into_iter().flatten();
        return Answer {
            sentence,
            details: details.collect(),
        };
    }
    if work == 0 {
        let _ = write!(sentence, "{whose} had no work.");
    } else {
        let _ = write!(
            sentence,
            "{whose} had work for {}: {}.",
            facts.amount(work),
            shares(facts)
        );
    }
    let details = [
        running(facts),
        runnable(facts),
        blocked(facts),
        idle_work(facts, idle),
        unknown(facts),
    ];
    Answer {
        sentence,
        details: details.into_iter().flatten().collect(),
    }
}

/// Returns the sentence on idle threads; empty for a single thread.
fn idle_threads(facts: &Facts<'_>, idle: usize) -> String {
    let threads = facts.threads.len();
    let inside = if facts.processes > 1 {
        format!(" in {}", count(facts.processes as u64, "process"))
    } else {
        String::new()
    };
    match (idle, threads) {
        (0, 1) => String::new(),
        (1, 1) => "The thread was idle. ".to_owned(),
        (0, _) => format!("None of the {threads} threads{inside} was idle. "),
        (_, _) if idle == threads => format!("All {threads} threads{inside} were idle. "),
        (1, _) => format!("1 of {threads} threads{inside} was idle. "),
        (_, _) => format!("{idle} of {threads} threads{inside} were idle. "),
    }
}

/// Returns the shares of the states, largest first.
fn shares(facts: &Facts<'_>) -> String {
    let split = &facts.split;
    let parts = [split.running, split.runnable, split.waiting];
    let mut shares: Vec<(u64, &str, u64)> = (parts.into_iter())
        .zip(["running", "waiting for a CPU", "blocked"])
        .map(|(part, name)| (part, name, percent(part, split.work())))
        .filter(|(_, _, percent)| *percent > 0)
        .collect();
    shares.sort_by_key(|(part, ..)| std::cmp::Reverse(*part));
    let mut texts: Vec<String> = (shares.iter())
        .map(|(_, name, percent)| format!("<b>{percent} % {name}</b>"))
        .collect();
    // The largest resource is named right after the share that it belongs to.
    let at = shares.iter().position(|(_, name, _)| *name == "blocked");
    if let Some(text) = at.and_then(|at| texts.get_mut(at))
        && let Some(cause) = largest(facts, State::Blocked)
    {
        let whose = if is_nearly_all(cause.group.time, split.waiting) {
            "on".to_owned()
        } else {
            format!("{} points of it on", points(facts, cause))
        };
        let _ = write!(text, " ({whose} {})", phrase(cause));
    }
    texts.join(", ")
}

/// Returns the largest cause of a state, if it is large enough to be named.
fn largest<'a>(facts: &'a Facts<'_>, state: State) -> Option<&'a Cause<'a>> {
    let mut causes = facts.causes.iter();
    let cause = causes.find(|cause| cause.state == state)?;
    (points(facts, cause) >= LEAST_CAUSE).then_some(cause)
}

/// Returns the share of a cause in the time with work, in per cent.
fn points(facts: &Facts<'_>, cause: &Cause<'_>) -> u64 {
    percent(cause.group.time, facts.split.work())
}

/// Returns a part of a whole in whole per cent, rounded as the tables are.
fn percent(part: u64, whole: u64) -> u64 {
    (part as f64 / whole.max(1) as f64 * 100.0).round() as u64
}

/// Returns the waits of a cause in words: `the lock LOCK_log, released by writer in flush`.
fn phrase(cause: &Cause<'_>) -> String {
    let resource = &cause.group.resource;
    let code = format!("<code>{}</code>", Escaped(resource));
    let is_unnamed = resource.is_empty();
    let mut text = match cause.reason {
        Some(reason @ (Reason::Lock | Reason::KernelLock)) => {
            let noun = if reason == Reason::Lock {
                "lock"
            } else {
                "kernel lock"
            };
            if is_unnamed {
                format!("{noun}s")
            } else if let Some(function) = cause.function {
                format!(
                    "a {noun} in <code>{}</code>",
                    Escaped(&short_name(function))
                )
            } else {
                format!("the {noun} {code}")
            }
        }
        _ if is_unnamed => Escaped(&cause.group.kind).to_string(),
        _ => format!("{}, {code}", Escaped(&cause.group.kind)),
    };
    let holders = cause.group.holders();
    let holder = holders
        .first()
        .filter(|(_, time)| is_nearly_all(*time, cause.group.time));
    if let Some((holder, _)) = holder {
        let _ = write!(text, ", held by <code>{}</code>", Escaped(holder));
    }
    if let Some((name, time, place)) = cause.group.waker(PLACE) {
        let share = if is_nearly_all(time, cause.group.time) {
            String::new()
        } else {
            format!("{} of it ", whole_percent(time, cause.group.time))
        };
        let _ = write!(
            text,
            ", {share}{} by <code>{}</code> in <code>{}</code>",
            cause.group.verb(),
            Escaped(name),
            Escaped(&place)
        );
    }
    text
}

/// Returns whether a time is large enough for a line.
fn counts(facts: &Facts<'_>, time: u64, per_cent: u64) -> bool {
    time > 0 && u128::from(time) * 100 >= u128::from(facts.split.work()) * u128::from(per_cent)
}

/// Returns the line on what ran.
fn running(facts: &Facts<'_>) -> Option<String> {
    let running = facts.split.running;
    let cause = largest(facts, State::Running).filter(|_| counts(facts, running, LEAST))?;
    let function = &cause.group.resource;
    if function.is_empty() {
        return Some("What ran was not sampled.".to_owned());
    }
    Some(format!(
        "Running: {} of it in <code>{}</code>.",
        whole_percent(cause.group.time, running),
        Escaped(function)
    ))
}

/// Returns the line on waiting for a CPU: who had the CPUs, or which limit was used up.
fn runnable(facts: &Facts<'_>) -> Option<String> {
    let runnable = facts.split.runnable;
    let cause = largest(facts, State::Runnable).filter(|_| counts(facts, runnable, LEAST))?;
    if !cause.group.resource.is_empty() {
        return Some(format!(
            "Waiting for a CPU: {} of it because a limit was used up: {}.",
            whole_percent(cause.group.time, runnable),
            Escaped(&cause.group.resource)
        ));
    }
    cpu_users(facts).map(|users| format!("Waiting for a CPU: {users}."))
}

/// Returns what the CPUs ran, as far as it was measured, as HTML.
pub(super) fn cpu_users(facts: &Facts<'_>) -> Option<String> {
    let whole = facts.cpu_ns();
    let programs = facts.programs();
    let cpus = count(u64::from(facts.profile.meta.cpus), "CPU");
    if whole == 0 || programs.iter().all(|(_, ran)| *ran == 0) {
        return None;
    }
    let named = programs.iter().take(PROGRAMS).filter(|(_, ran)| *ran > 0);
    let named: Vec<String> = (named.zip(0..))
        .map(|((name, ran), at)| {
            let share = whole_percent(*ran, whole);
            let name = Escaped(name);
            match at {
                0 => format!("<code>{name}</code> had the {cpus} for {share} of their time"),
                _ => format!("<code>{name}</code> for {share}"),
            }
        })
        .collect();
    let rest = if facts.kernel_threads.is_empty() {
        "; other programs were not measured"
    } else {
        ""
    };
    Some(format!("{}{rest}", named.join(", ")))
}

/// Returns the line on the second largest resource.
fn blocked(facts: &Facts<'_>) -> Option<String> {
    let mut causes = facts.causes.iter();
    let mut causes = causes
        .by_ref()
        .filter(|cause| cause.state == State::Blocked);
    let second = causes.nth(1)?;
    let share = points(facts, second);
    (share >= LEAST_CAUSE)
        .then(|| format!("Blocked as well: {share} points on {}.", phrase(second)))
}

/// Returns the line on the work of idle threads, if it is large.
fn idle_work(facts: &Facts<'_>, idle: usize) -> Option<String> {
    if idle == facts.threads.len() {
        return None;
    }
    let threads = facts.threads.iter().filter(|thread| thread.is_idle());
    let work = threads.fold(0, |sum: u64, thread| {
        sum.saturating_add(thread.split.work())
    });
    counts(facts, work, LEAST_CAUSE).then(|| {
        format!(
            "Each idle thread had work for less than 0.5 % of its time; together that is {} more.",
            facts.amount(work)
        )
    })
}

/// Returns the line on blocked time of which nothing tells whether it was idle.
fn unknown(facts: &Facts<'_>) -> Option<String> {
    let unknown = facts.split.unknown;
    counts(facts, unknown, 1).then(|| {
        format!(
            "In addition, {} of blocked time could not be told idle from waiting.",
            facts.amount(unknown)
        )
    })
}

/// Makes the answer of a profile that has time in some states only.
fn without_clocks(facts: &Facts<'_>) -> Answer {
    let threads = count(facts.threads.len() as u64, "thread");
    let split = &facts.split;
    let blocked = split.waiting.saturating_add(split.unknown);
    let parts = [
        (split.running, "running"),
        (split.runnable, "waiting for a CPU"),
        (blocked, "blocked"),
    ];
    let (known, missing): (Vec<_>, Vec<_>) = parts.into_iter().partition(|(time, _)| *time > 0);
    let known: Vec<String> = known
        .into_iter()
        .map(|(time, state)| format!("<b>{} {state}</b>", facts.amount(time)))
        .collect();
    let missing: Vec<&str> = missing.into_iter().map(|(_, state)| state).collect();
    let missing = if missing.is_empty() {
        String::new()
    } else {
        format!(" The capture has no time {}.", missing.join(" or "))
    };
    let details = [running(facts), runnable(facts), blocked_most(facts)];
    Answer {
        sentence: format!("{threads}: {}.{missing}", known.join(", ")),
        details: details.into_iter().flatten().collect(),
    }
}

/// Returns the line on the largest resource.
fn blocked_most(facts: &Facts<'_>) -> Option<String> {
    let cause = largest(facts, State::Blocked)?;
    let share = whole_percent(cause.group.time, facts.split.waiting);
    Some(format!("Blocked: {share} of it on {}.", phrase(cause)))
}

/// Makes the answer of a profile that counts events.
fn of_events(facts: &Facts<'_>, event: &str) -> Answer {
    let whole = facts.split.running;
    let mut sentence = format!(
        "{whole} {} were counted in {}.",
        Escaped(event),
        count(facts.threads.len() as u64, "thread")
    );
    if let Some(cause) = facts.causes.first() {
        let _ = write!(
            sentence,
            " <b>{}</b> of them in <code>{}</code>.",
            whole_percent(cause.group.time, whole),
            Escaped(&cause.group.resource)
        );
    }
    Answer {
        sentence,
        details: Vec::new(),
    }
}
