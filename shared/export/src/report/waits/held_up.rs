//! What held a program up, in a sentence.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use profile::{Detail, Idleness, Profile, Reason, State, Wait, WaitKind};

use crate::report::Row;
use crate::report::numbers::{cut, percent, seconds};
use crate::text::waits::{holder_text, resource_text};

/// Less than so much of the time with work, in thousandths, is not told of.
const LEAST: u64 = 10;
/// Characters of what is waited on: a path may be long.
const LONGEST: usize = 120;

/// What held threads up: for which reason, and what it was.
type HeldUp = BTreeMap<Reason, BTreeMap<String, Cause>>;

/// One thing that held threads up.
#[derive(Debug, Default)]
struct Cause {
    time: u64,
    /// How they waited for it, where the reason's detail is not all that is known.
    details: BTreeSet<String>,
    /// That time by who held it.
    holders: BTreeMap<String, u64>,
}

/// What threads did while they had work, nanoseconds.
#[derive(Debug, Default)]
struct Work {
    running: u64,
    runnable: u64,
    /// The parts of `runnable` in which a limit was used up.
    limits: BTreeMap<Detail, u64>,
    held_up: HeldUp,
    /// Blocked, and nothing tells whether there was work.
    unknown: u64,
}

/// Writes what held these threads up most; nothing if no reason is known. `of_several`: they
/// are of several processes.
pub(in crate::report) fn write<'a>(
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
            let Some(wait) = row.profile.wait(sample) else {
                continue;
            };
            any_is_known = true;
            if sample.state != Some(State::Blocked) {
                work.limit(wait.kind.detail, wait.idleness, weight.value);
                continue;
            }
            known += weight.value;
            match wait.idleness {
                Idleness::Waiting if is_measured_itself(wait.kind, of_several) => {}
                Idleness::Waiting => {
                    let causes = work.held_up.entry(wait.kind.reason).or_default();
                    add(causes, row.profile, wait, weight.value);
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

impl Work {
    /// Takes in runnable time in which a limit kept threads off their CPUs.
    fn limit(&mut self, detail: Detail, idleness: Idleness, time: u64) {
        if idleness == Idleness::Idle {
            self.runnable = self.runnable.saturating_sub(time);
        } else {
            *self.limits.entry(detail).or_default() += time;
        }
    }
}

/// A limit as the sentence names it.
fn limit_in_words(detail: Detail) -> &'static str {
    match detail {
        Detail::CpuQuota => "the CPU quota of its cgroup",
        Detail::DeadlineBudget => "its budget under SCHED_DEADLINE",
        Detail::RealTimeLimit => "the limit of real-time threads (kernel.sched_rt_runtime_us)",
        other => other.known_name().unwrap_or("a limit"),
    }
}

/// Returns whether the wait was for a thread or process whose own time is in the report: what
/// held that one up is told there.
fn is_measured_itself(kind: WaitKind, of_several: bool) -> bool {
    kind.reason == Reason::Child && (of_several || kind.detail == Detail::Thread)
}

/// Nearly all, in percent: what is so much is told of as if it were all.
const NEARLY_ALL: u64 = 95;

fn is_nearly_all(part: u64, whole: u64) -> bool {
    u128::from(part) * 100 >= u128::from(whole) * u128::from(NEARLY_ALL)
}

/// Adds a wait by its resource, or by its detail where that is not known.
fn add(causes: &mut BTreeMap<String, Cause>, profile: &Profile, wait: &Wait, time: u64) {
    let detail = profile.detail_name(wait.kind.detail);
    let resource = wait.resource.map(|id| &profile.resources[id]);
    let what = resource.map_or(detail.into(), |resource| resource_text(profile, resource));
    let cause = causes.entry(what.into_owned()).or_default();
    cause.time += time;
    if wait.resource.is_some() {
        cause.details.insert(detail.to_owned());
    }
    if let Some(holder) = wait.holder {
        let holder = holder_text(profile, holder);
        *cause.holders.entry(holder).or_default() += time;
    }
}

/// `mutex, ledger, held by writer`, the holder where it is one.
fn told_cause(what: &str, cause: &Cause) -> String {
    let details: Vec<&str> = cause.details.iter().map(String::as_str).collect();
    let details = (!details.is_empty()).then(|| details.join(" and "));
    let mut holders = cause.holders.iter();
    let holder = holders.find(|(_, time)| is_nearly_all(**time, cause.time));
    let holder = holder.map(|(holder, _)| format!("held by {holder}"));
    let parts: Vec<String> = (details.into_iter())
        .chain([what.to_owned()])
        .chain(holder)
        .collect();
    cut(&parts.join(", "), LONGEST).into_owned()
}

/// The reason that held threads up most.
struct Most {
    /// The reason, and what it was, if that was one thing.
    name: String,
    time: u64,
    /// What it was most, if it was several things.
    of_it: String,
}

impl Most {
    fn of(held_up: &HeldUp) -> Option<Most> {
        let (reason, causes) = held_up.iter().max_by_key(|(_, causes)| sum(causes))?;
        let (what, cause) = causes.iter().max_by_key(|(_, cause)| cause.time)?;
        let (reason, time, part) = (reason.name(), sum(causes), cause.time);
        let cause = told_cause(what, cause);
        Some(match is_nearly_all(part, time) {
            true => Most {
                name: format!("{reason}: {cause}"),
                time,
                of_it: String::new(),
            },
            false => Most {
                name: reason.to_owned(),
                time,
                of_it: format!(", {} s of it {cause}", seconds(part)),
            },
        })
    }
}

fn sum(causes: &BTreeMap<String, Cause>) -> u64 {
    causes.values().map(|cause| cause.time).sum()
}

fn told(work: &Work) -> String {
    let blocked: u64 = work.held_up.values().map(sum).sum();
    let all = work.running + work.runnable + blocked;
    let counts = |time: u64| time > 0 && time.saturating_mul(1000) >= all.saturating_mul(LEAST);
    let of_all = |time: u64| format!("{} s ({} %)", seconds(time), percent(time, all));
    let mut told = if all == 0 {
        "Its threads had nothing to do.".to_owned()
    } else {
        let most = Most::of(&work.held_up);
        let (cause, time, of_it) = match &most {
            Some(most) => (&*most.name, most.time, &*most.of_it),
            None => ("", 0, ""),
        };
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
                    ", and were blocked for {}, most by {cause}: {} s{of_it}",
                    of_all(blocked),
                    seconds(time)
                ),
                false => String::new(),
            };
            let limit = work.limits.iter().max_by_key(|(_, time)| **time);
            let limit = limit.filter(|(_, time)| **time * 2 > work.runnable);
            let (cause, time) = match limit {
                Some((detail, time)) => (limit_in_words(*detail), *time),
                None => ("waiting for a CPU", work.runnable),
            };
            format!(
                "Held up most by {cause}: {} of {with_work}. {ran}{others}.",
                of_all(time)
            )
        } else {
            format!(
                "Held up most by {cause}: {} of {with_work}{of_it}. {ran}, waited for a CPU for {}, and \
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
    use profile::{Holder, Resource, Unit};

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Seconds that threads waited: for which reason, its detail, the object and who held it.
    type Waits<'a> = &'a [(Reason, Detail, &'a str, &'a str, u64)];

    fn told(running: u64, runnable: u64, quota: u64, unknown: u64, waits: Waits<'_>) -> String {
        let mut profile = Profile::new(Unit::Nanoseconds);
        let mut held_up = HeldUp::new();
        for &(reason, detail, object, holder, time) in waits {
            let resource = (!object.is_empty()).then(|| {
                let object = profile.names.text(object);
                profile.resources.id(Resource::Described(object))
            });
            let holder = (!holder.is_empty()).then(|| Holder {
                comm: profile.names.text(holder),
                thread: None,
                shares_name: false,
            });
            let wait = Wait {
                resource,
                holder,
                idleness: Idleness::Waiting,
                ..Wait::new(WaitKind::new(reason, detail))
            };
            let causes = held_up.entry(reason).or_default();
            add(causes, &profile, &wait, time * SECOND);
        }
        super::told(&Work {
            running: running * SECOND,
            runnable: runnable * SECOND,
            limits: BTreeMap::from([(Detail::CpuQuota, quota * SECOND)]),
            held_up,
            unknown: unknown * SECOND,
        })
    }

    fn ledger(time: u64) -> [(Reason, Detail, &'static str, &'static str, u64); 1] {
        [(Reason::Lock, Detail::Mutex, "ledger", "k_holder", time)]
    }

    #[test]
    fn the_longest_of_what_held_it_up_is_named() {
        for (running, runnable, quota, unknown, blocked, expected) in [
            (
                1,
                1,
                0,
                0,
                8,
                "Held up most by lock: mutex, ledger, held by k_holder: 8.000 s (80.0 %) of the \
                 10.000 s in which its threads had work. They ran for 1.000 s (10.0 %), waited \
                 for a CPU for 1.000 s (10.0 %), and were blocked for 8.000 s (80.0 %) in all.",
            ),
            (
                4,
                5,
                2,
                0,
                1,
                "Held up most by waiting for a CPU: 5.000 s (50.0 %) of the 10.000 s in which its \
                 threads had work. They ran for 4.000 s (40.0 %), and were blocked for 1.000 s \
                 (10.0 %), most by lock: mutex, ledger, held by k_holder: 1.000 s.",
            ),
            (
                4,
                5,
                3,
                0,
                1,
                "Held up most by the CPU quota of its cgroup: 3.000 s (30.0 %) of the 10.000 s in \
                 which its threads had work. They ran for 4.000 s (40.0 %), and were blocked for \
                 1.000 s (10.0 %), most by lock: mutex, ledger, held by k_holder: 1.000 s.",
            ),
        ] {
            let told = told(running, runnable, quota, unknown, &ledger(blocked));
            assert_eq!(told, expected);
        }
        assert_eq!(
            told(10, 0, 0, 2, &[]),
            "Nothing held it up: of the 10.000 s in which its threads had work they ran for \
             10.000 s (100.0 %). (Whether they had work in 2.000 s more, in which they were \
             blocked, is not known.)"
        );
        assert_eq!(told(0, 0, 0, 0, &[]), "Its threads had nothing to do.");
    }

    #[test]
    fn what_several_things_do_is_told_as_their_reason() {
        let table = |name, time| (Reason::DiskWrite, Detail::Sync, name, "", time);
        let waits = [
            (Reason::Sleep, Detail::ForTime, "", "", 4),
            table("/db/a", 3),
            table("/db/b", 2),
        ];
        assert_eq!(
            told(0, 1, 0, 0, &waits),
            "Held up most by disk write: 5.000 s (50.0 %) of the 10.000 s in which its threads \
             had work, 3.000 s of it sync, /db/a. They ran for 0.000 s (0.0 %), waited for a CPU \
             for 1.000 s (10.0 %), and were blocked for 9.000 s (90.0 %) in all."
        );
        assert_eq!(
            told(0, 9, 0, 0, &waits[1..]),
            "Held up most by waiting for a CPU: 9.000 s (64.3 %) of the 14.000 s in which its \
             threads had work. They ran for 0.000 s (0.0 %), and were blocked for 5.000 s \
             (35.7 %), most by disk write: 5.000 s, 3.000 s of it sync, /db/a."
        );
    }
}
