//! What held a program up, in a sentence.

use std::collections::BTreeMap;
use std::io::{self, Write};

use profile::{Idleness, Name, Profile, Reason, State, Why};

use super::Row;
use super::numbers::{cut, percent, seconds};

/// Less than so much of the time with work, in thousandths, is not told of.
const LEAST: u64 = 10;
/// Characters of what is waited on: a path may be long.
const LONGEST: usize = 120;

/// What threads did while they had work, nanoseconds.
#[derive(Debug, Default)]
struct Work {
    running: u64,
    runnable: u64,
    /// That part of it in which a cgroup's CPU quota was used up.
    quota: u64,
    /// By what held them up.
    held_up: BTreeMap<String, u64>,
    /// Blocked, and nothing tells whether there was work.
    unknown: u64,
}

/// Writes what held these threads up most; nothing if no reason is known. `of_several`: they
/// are of several processes.
pub(super) fn write<'a>(
    rows: impl Iterator<Item = &'a Row<'a>>,
    of_several: bool,
    writer: &mut dyn Write,
) -> io::Result<()> {
    let mut work = Work::default();
    let mut any_is_known = false;
    for row in rows {
        let clock = &row.thread.thread.clock;
        work.running += clock.running_ns;
        work.runnable += clock.runnable_ns;
        let mut known = 0;
        for (sample, weight) in &row.thread.stacks {
            let Some(why) = row.profile.why(sample) else {
                continue;
            };
            any_is_known = true;
            if sample.state != Some(State::Blocked) {
                work.quota += weight.value;
                continue;
            }
            known += weight.value;
            match why.idleness {
                Idleness::Waiting if is_measured_itself(row.profile, why, of_several) => {}
                Idleness::Waiting => {
                    let cause = cause(row.profile, why);
                    *work.held_up.entry(cause).or_default() += weight.value;
                }
                Idleness::Unknown => work.unknown += weight.value,
                Idleness::Idle | Idleness::Dormant => {}
            }
        }
        work.unknown += clock.blocked_ns.saturating_sub(known);
    }
    match any_is_known {
        true => writeln!(writer, "{}", told(&work)),
        false => Ok(()),
    }
}

/// Whether the wait was for somebody whose time is here, too: what held that one up did so.
fn is_measured_itself(profile: &Profile, why: Why, of_several: bool) -> bool {
    why.reason == Reason::Child && (of_several || &*profile.names[why.detail] == "thread")
}

fn cause(profile: &Profile, why: Why) -> String {
    let name = |name: Option<Name>, before: &str| {
        name.map_or(String::new(), |name| {
            format!("{before}{}", profile.names[name])
        })
    };
    format!(
        "{}{}{}",
        profile.kind_told(why),
        name(why.object, ", "),
        name(why.holder, ", held by ")
    )
}

fn told(work: &Work) -> String {
    let blocked: u64 = work.held_up.values().sum();
    let all = work.running + work.runnable + blocked;
    let counts = |time: u64| time > 0 && time.saturating_mul(1000) >= all.saturating_mul(LEAST);
    let of_all = |time: u64| format!("{} s ({} %)", seconds(time), percent(time, all));
    let mut told = if all == 0 {
        "Its threads had nothing to do.".to_owned()
    } else {
        let most = work.held_up.iter().max_by_key(|(_, time)| **time);
        let (cause, time) = most.map_or(("", 0), |(cause, time)| (cause.as_str(), *time));
        let cause = cut(cause, LONGEST);
        let with_work = format!("the {} s in which its threads had work", seconds(all));
        let ran = format!("They ran for {}", of_all(work.running));
        if !counts(work.runnable.max(time)) {
            format!(
                "Nothing held it up: of {with_work} they ran for {}.",
                of_all(work.running)
            )
        } else if work.runnable >= time {
            let others = match counts(blocked) {
                true => format!(
                    ", and were blocked for {}, most by {cause}: {} s",
                    of_all(blocked),
                    seconds(time)
                ),
                false => String::new(),
            };
            let (cause, time) = match work.quota * 2 > work.runnable {
                true => ("the CPU quota of its cgroup", work.quota),
                false => ("waiting for a CPU", work.runnable),
            };
            format!(
                "Held up most by {cause}: {} of {with_work}. {ran}{others}.",
                of_all(time)
            )
        } else {
            format!(
                "Held up most by {cause}: {} of {with_work}. {ran}, waited for a CPU for {}, and \
                 were blocked for {} in all.",
                of_all(time),
                of_all(work.runnable),
                of_all(blocked)
            )
        }
    };
    if counts(work.unknown) {
        told.push_str(&format!(
            " (Whether they had work in {} s more, in which they were blocked, is not known.)",
            seconds(work.unknown)
        ));
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn the_longest_of_what_held_it_up_is_named() {
        let held_up = |time| BTreeMap::from([("lock: mutex, ledger".to_owned(), time * SECOND)]);
        for (running, runnable, quota, blocked, unknown, expected) in [
            (
                1,
                1,
                0,
                8,
                0,
                "Held up most by lock: mutex, ledger: 8.000 s (80.0 %) of the 10.000 s in which its \
                 threads had work. They ran for 1.000 s (10.0 %), waited for a CPU for 1.000 s \
                 (10.0 %), and were blocked for 8.000 s (80.0 %) in all.",
            ),
            (
                4,
                5,
                2,
                1,
                0,
                "Held up most by waiting for a CPU: 5.000 s (50.0 %) of the 10.000 s in which its \
                 threads had work. They ran for 4.000 s (40.0 %), and were blocked for 1.000 s \
                 (10.0 %), most by lock: mutex, ledger: 1.000 s.",
            ),
            (
                4,
                5,
                3,
                1,
                0,
                "Held up most by the CPU quota of its cgroup: 3.000 s (30.0 %) of the 10.000 s in \
                 which its threads had work. They ran for 4.000 s (40.0 %), and were blocked for \
                 1.000 s (10.0 %), most by lock: mutex, ledger: 1.000 s.",
            ),
            (
                10,
                0,
                0,
                0,
                2,
                "Nothing held it up: of the 10.000 s in which its threads had work they ran for \
                 10.000 s (100.0 %). (Whether they had work in 2.000 s more, in which they were \
                 blocked, is not known.)",
            ),
            (0, 0, 0, 0, 0, "Its threads had nothing to do."),
        ] {
            let work = Work {
                running: running * SECOND,
                runnable: runnable * SECOND,
                quota: quota * SECOND,
                held_up: held_up(blocked),
                unknown: unknown * SECOND,
            };
            assert_eq!(super::told(&work), expected);
        }
    }
}
