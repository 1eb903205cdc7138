//! The answer: causes that held a program up, longest first, with their shares of the time with
//! work.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use export::text::numbers::{count, duration, is_nearly_all, part_of, whole_percent};
use export::text::waits::{holder_text, short_resource_text};
use profile::{Detail, Profile, Reason, State, Wait, Weight};

use super::split::{Counted, Split, counted};
use crate::Row;
use crate::cpus::CpuUse;

/// Minimum share of the time with work, in thousandths, of a cause that has a line.
const LEAST: u64 = 10;
/// Divisor of a reason's time. The answer names a resource whose time is at least the quotient.
const LEAST_PART: u64 = 5;
/// Maximum number of causes with a line of their own.
const LISTED: usize = 5;

/// Time in which threads had work, and the causes that held them up.
#[derive(Debug, Default)]
pub(crate) struct Work {
    split: Split,
    /// Number of threads. `idle_threads` is the number of idle threads among them.
    threads: u64,
    idle_threads: u64,
    /// Runnable time in which a limit was used up, in ns, by limit.
    limits: BTreeMap<Detail, u64>,
    held_up: BTreeMap<Reason, BTreeMap<String, Cause>>,
    /// Set if the reason of any wait is known.
    is_known: bool,
    /// Set if the threads are of several processes.
    of_several: bool,
}

/// A resource that held threads up, or a detail of a reason if the resource is unknown.
#[derive(Debug, Default)]
struct Cause {
    time: u64,
    /// Number of waits that were measured one by one. `longest` is the longest of them, in ns.
    waits: u64,
    longest: u64,
    /// Details of the waits for the resource.
    details: BTreeSet<String>,
    /// Time by holder.
    holders: BTreeMap<String, u64>,
}

/// A line of the answer with its cause.
struct Line {
    cause: String,
    time: u64,
    detail: String,
}

impl Work {
    /// Adds up the time of threads. `of_several` is set if they are of several processes.
    pub(crate) fn new<'a>(rows: impl Iterator<Item = &'a Row<'a>>, of_several: bool) -> Work {
        let mut work = Work {
            of_several,
            ..Work::default()
        };
        for row in rows {
            let split = Split::new(row, of_several);
            work.split = work.split + split;
            work.threads += 1;
            work.idle_threads += u64::from(split.is_idle());
            for (sample, weight) in &row.thread.stacks {
                if let Some(wait) = row.profile.wait(sample) {
                    work.is_known = true;
                    let weight = Weight {
                        // A sampled interval stands for an unknown number of intervals.
                        events: if sample.is_sampled { 0 } else { weight.events },
                        longest: if sample.is_sampled { 0 } else { weight.longest },
                        ..*weight
                    };
                    work.add(row.profile, sample.state, wait, &weight);
                }
            }
        }
        work
    }

    /// Adds a wait of the given state.
    fn add(&mut self, profile: &Profile, state: Option<State>, wait: &Wait, weight: &Weight) {
        let counted = counted(wait, self.of_several);
        match state {
            Some(State::Blocked) if counted == Counted::Waiting => {
                let causes = self.held_up.entry(wait.kind.reason).or_default();
                add(causes, profile, wait, weight);
            }
            Some(State::Runnable) if counted != Counted::Idle => {
                let limit = self.limits.entry(wait.kind.detail).or_default();
                *limit = limit.saturating_add(weight.value);
            }
            _ => {}
        }
    }

    /// Returns the lines of the answer: the time with work, the causes that held threads up, and
    /// the unknown time.
    pub(crate) fn answer(&self, cpus: Option<&CpuUse>) -> Vec<String> {
        let work = self.split.work();
        let seconds = |time| part_of(time, work);
        if !self.is_known && self.split.unknown > 0 {
            return vec![format!(
                "It is not known why threads were blocked: running {}, runnable {}, blocked {}.",
                seconds(self.split.running),
                seconds(self.split.runnable),
                seconds(self.split.unknown)
            )];
        }
        let (whose, them, were) = match (self.of_several, self.threads) {
            (_, 1) => ("The thread", "it", "was"),
            (true, _) => ("The threads", "them", "were"),
            (false, _) => ("Its threads", "them", "were"),
        };
        let causes = self.causes(cpus);
        let mut lines = vec![match (work, causes.is_empty()) {
            (0, _) => format!("{whose} had no work."),
            (_, true) => format!(
                "{whose} had work for {}, and nothing held {them} up:",
                seconds(work)
            ),
            (_, false) => format!(
                "{whose} had work for {}, and {were} held up most by",
                seconds(work)
            ),
        }];
        if work > 0 {
            let widest = causes.iter().map(|line| line.cause.chars().count()).max();
            let widest = widest.unwrap_or(0).max(20);
            let figures = |cause: &str, time| {
                let share = whole_percent(time, work);
                format!("  {cause:<widest$} {:>10} {share:>6}", seconds(time))
            };
            lines.extend((causes.iter()).map(|line| {
                let figures = figures(&line.cause, line.time);
                format!("{figures}   {}", line.detail).trim_end().to_owned()
            }));
            lines.push(figures("(running", self.split.running) + ")");
        }
        lines.extend(self.sentence());
        lines
    }

    /// Returns the sentence on idle threads and unknown time.
    fn sentence(&self) -> Option<String> {
        let Split { idle, unknown, .. } = self.split;
        let seconds = |time| part_of(time, time);
        let idle = match (self.threads, self.idle_threads) {
            (1, _) if idle > 0 => Some(format!("It was idle for {}", seconds(idle))),
            (_, 0) | (1, _) => None,
            (_, 1) => Some("1 thread was idle".to_owned()),
            (_, idle) => Some(format!("{idle} threads were idle")),
        };
        let unknown = (unknown > 0 && self.counts(unknown)).then(|| {
            format!(
                "{} of blocked time could not be told idle from waiting",
                seconds(unknown)
            )
        });
        let parts: Vec<String> = idle.into_iter().chain(unknown).collect();
        (!parts.is_empty()).then(|| parts.join("; ") + ".")
    }

    /// Returns whether a time is a large enough share of the time with work to have a line.
    fn counts(&self, time: u64) -> bool {
        u128::from(time) * 1000 >= u128::from(self.split.work()) * u128::from(LEAST)
    }

    /// Returns the longest causes, and the other causes as one line.
    fn causes(&self, cpus: Option<&CpuUse>) -> Vec<Line> {
        let mut causes = self.all_causes(cpus);
        causes.retain(|cause| self.counts(cause.time));
        causes.truncate(LISTED);
        let listed = causes.iter().map(|cause| cause.time);
        let listed = listed.fold(self.split.running, u64::saturating_add);
        let others = self.split.work().saturating_sub(listed);
        if others > 0 && self.counts(others) {
            causes.push(Line {
                cause: "other causes".to_owned(),
                time: others,
                detail: String::new(),
            });
        }
        causes
    }

    /// Returns all causes, longest first.
    fn all_causes(&self, cpus: Option<&CpuUse>) -> Vec<Line> {
        let limited = self.limits.values().copied();
        let limited = limited.fold(0, u64::saturating_add);
        let for_a_cpu = Line {
            cause: "waiting for a CPU".to_owned(),
            time: self.split.runnable.saturating_sub(limited),
            detail: cpus.map_or_else(String::new, CpuUse::describe),
        };
        let limits = self.limits.iter().map(|(detail, time)| {
            let (cause, detail) = describe_limit(*detail);
            Line {
                cause: cause.to_owned(),
                time: (*time).min(self.split.runnable),
                detail: detail.to_owned(),
            }
        });
        let held_up = self.held_up.iter().map(|(reason, causes)| Line {
            cause: reason.name().to_owned(),
            time: sum(causes),
            detail: describe(causes),
        });
        let lines = [for_a_cpu].into_iter().chain(limits).chain(held_up);
        let mut lines: Vec<Line> = lines.filter(|line| line.time > 0).collect();
        lines.sort_by_key(|line| Reverse(line.time));
        lines
    }
}

/// Writes the causes that held these threads up. `of_several` is set if they are of several
/// processes.
pub(crate) fn write<'a>(
    rows: impl Iterator<Item = &'a Row<'a>>,
    of_several: bool,
    writer: &mut dyn Write,
) -> io::Result<()> {
    let work = Work::new(rows, of_several);
    (work.answer(None).iter()).try_for_each(|line| writeln!(writer, "{line}"))
}

/// Returns the answer's name of a limit, and its setting.
fn describe_limit(detail: Detail) -> (&'static str, &'static str) {
    match detail {
        Detail::CpuQuota => ("CPU quota", "the limit of its cgroup (cpu.max)"),
        Detail::DeadlineBudget => ("deadline budget", "its runtime under SCHED_DEADLINE"),
        Detail::RealTimeLimit => ("limit of real-time threads", "kernel.sched_rt_runtime_us"),
        other => (other.known_name().unwrap_or("a limit"), ""),
    }
}

/// Adds a wait by its resource, or by its detail if the resource is not known.
fn add(causes: &mut BTreeMap<String, Cause>, profile: &Profile, wait: &Wait, weight: &Weight) {
    let detail = profile.detail_name(wait.kind.detail);
    let resource = wait.resource.map(|id| &profile.resources[id]);
    let what = resource.map_or(detail.into(), |resource| {
        short_resource_text(profile, resource)
    });
    let cause = causes.entry(what.into_owned()).or_default();
    cause.time = cause.time.saturating_add(weight.value);
    cause.waits = cause.waits.saturating_add(weight.events);
    cause.longest = cause.longest.max(weight.longest);
    if wait.resource.is_some() {
        cause.details.insert(detail.to_owned());
    }
    if let Some(holder) = wait.holder {
        let holder = holder_text(profile, holder);
        let held = cause.holders.entry(holder).or_default();
        *held = held.saturating_add(weight.value);
    }
}

/// Describes the causes of one reason: `mutex, ledger, held by writer, 30 waits, longest 20 ms`.
fn describe(causes: &BTreeMap<String, Cause>) -> String {
    let Some((what, cause)) = causes.iter().max_by_key(|(_, cause)| cause.time) else {
        return String::new();
    };
    let time = sum(causes);
    let name = name_cause(what, cause);
    let name = if is_nearly_all(cause.time, time) {
        name
    } else if cause.time >= time / LEAST_PART {
        format!("{} of it {name}", whole_percent(cause.time, time))
    } else {
        count(causes.len() as u64, "resource")
    };
    let waits = causes.values().map(|cause| cause.waits);
    let waits = waits.fold(0, u64::saturating_add);
    if waits == 0 {
        return name;
    }
    let longest = causes.values().map(|cause| cause.longest).max();
    let longest = duration(longest.unwrap_or(0));
    format!("{name}, {}, longest {longest}", count(waits, "wait"))
}

/// Names a cause: `mutex, ledger, held by writer`. The name includes the holder if a single thread
/// held the resource nearly all of the time.
fn name_cause(what: &str, cause: &Cause) -> String {
    let details: Vec<&str> = cause.details.iter().map(String::as_str).collect();
    let details = (!details.is_empty()).then(|| details.join(" and "));
    let mut holders = cause.holders.iter();
    let holder = holders.find(|(_, time)| is_nearly_all(**time, cause.time));
    let holder = holder.map(|(holder, _)| format!("held by {holder}"));
    let parts: Vec<String> = (details.into_iter())
        .chain([what.to_owned()])
        .chain(holder)
        .collect();
    parts.join(", ")
}

fn sum(causes: &BTreeMap<String, Cause>) -> u64 {
    let times = causes.values().map(|cause| cause.time);
    times.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use profile::{Holder, Idleness, Resource, Unit, WaitKind};

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Waits as reason, detail, resource, holder and seconds.
    type Waits<'a> = &'a [(Reason, Detail, &'a str, &'a str, u64)];

    /// Returns the answer for threads with these seconds of running, runnable and unknown time. For
    /// `quota` seconds of the runnable time a quota was used up.
    fn answer(running: u64, runnable: u64, quota: u64, unknown: u64, waits: Waits<'_>) -> String {
        let mut profile = Profile::new(Unit::Nanoseconds);
        let mut work = Work {
            threads: 2,
            is_known: true,
            split: Split {
                running: running * SECOND,
                runnable: runnable * SECOND,
                waiting: waits.iter().map(|(.., time)| time * SECOND).sum(),
                idle: 0,
                unknown: unknown * SECOND,
            },
            ..Work::default()
        };
        let weight = |time| Weight {
            value: time * SECOND,
            events: 2,
            longest: time * SECOND,
            ..Weight::default()
        };
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
            work.add(&profile, Some(State::Blocked), &wait, &weight(time));
        }
        if quota > 0 {
            let wait = Wait::new(WaitKind::new(Reason::Throttle, Detail::CpuQuota));
            work.add(&profile, Some(State::Runnable), &wait, &weight(quota));
        }
        work.answer(None).join("\n")
    }

    #[test]
    fn causes_are_there_with_their_shares_longest_first() {
        let lock = (Reason::Lock, Detail::Mutex, "ledger", "k_holder", 4);
        let sync = (Reason::DiskWrite, Detail::Sync, "/db/a", "", 3);
        let other = (Reason::DiskWrite, Detail::Sync, "/db/b", "", 2);
        assert_eq!(
            answer(2, 9, 1, 3, &[lock, sync, other]),
            "\
Its threads had work for 20.0 s, and were held up most by
  waiting for a CPU         8.0 s   40 %
  disk write                5.0 s   25 %   60 % of it sync, /db/a, 4 waits, longest 3.00 s
  lock                      4.0 s   20 %   mutex, ledger, held by k_holder, 2 waits, longest 4.00 s
  CPU quota                 1.0 s    5 %   the limit of its cgroup (cpu.max)
  (running                  2.0 s   10 %)
3.00 s of blocked time could not be told idle from waiting."
        );
    }

    #[test]
    fn five_causes_are_listed_and_the_others_are_one() {
        let waits = [
            Reason::Lock,
            Reason::Memory,
            Reason::DiskRead,
            Reason::DiskWrite,
            Reason::Network,
            Reason::PageFault,
        ];
        let waits = waits.map(|reason| (reason, Detail::Unknown, "", "", 1));
        let text = answer(1, 3, 0, 0, &waits);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 8, "{text}");
        assert_eq!(
            lines[6], "  other causes              2.0 s   20 %",
            "{text}"
        );
    }

    #[test]
    fn what_nothing_holds_up_runs() {
        assert_eq!(
            answer(4, 0, 0, 0, &[]),
            "Its threads had work for 4.00 s, and nothing held them up:\n  \
             (running                 4.00 s  100 %)"
        );
        assert_eq!(answer(0, 0, 0, 0, &[]), "Its threads had no work.");
    }
}
